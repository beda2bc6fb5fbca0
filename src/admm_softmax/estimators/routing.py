"""scikit-learn's metadata routing: what goes to the splitter, and what to the scorer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sklearn.utils import metadata_routing as routing
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing

from admm_softmax.estimators.scoring import HeldOut, as_scorer


class Routed(NamedTuple):
    """Arguments of the splitter; the weights of scores; what else the scorer asks for."""

    split: Mapping[str, Any]
    sample_weight: Any
    score: Mapping[str, Any]


def route_fit(estimator: Any, rows: HeldOut, groups: Any, params: Mapping[str, Any]) -> Routed:
    """What `fit` hands on. Without routing: groups to the splitter, weights to the scorer."""
    if not routing._routing_enabled():
        routing._raise_for_params(params, estimator, "fit")
        return Routed({"groups": groups}, rows.sample_weight, {})
    given = {"sample_weight": rows.sample_weight, "groups": groups, **params}
    given = {name: value for name, value in given.items() if value is not None}
    routed = process_routing(estimator, "fit", **given)
    scores = dict(routed.scorer.score)
    weight = scores.pop("sample_weight", None)
    return Routed(routed.splitter.split, weight, scores)


def route_score(
    estimator: Any, sample_weight: Any, params: Mapping[str, Any]
) -> tuple[Any, dict[str, Any]]:
    """The weights of a score, and what else the scorer asks for."""
    if not routing._routing_enabled():
        routing._raise_for_params(params, estimator, "score")
        return sample_weight, {}
    given = {"sample_weight": sample_weight, **params}
    given = {name: value for name, value in given.items() if value is not None}
    scores = dict(process_routing(estimator, "score", **given).scorer.score)
    return scores.pop("sample_weight", None), scores


def router_of(estimator: Any) -> MetadataRouter:
    """The router of an estimator with a splitter and a scorer."""
    scores = MethodMapping().add(caller="score", callee="score").add(caller="fit", callee="score")
    return (
        MetadataRouter(owner=estimator)
        .add_self_request(estimator)
        .add(
            splitter=estimator.cv,
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
        .add(scorer=as_scorer(estimator.scoring), method_mapping=scores)
    )
