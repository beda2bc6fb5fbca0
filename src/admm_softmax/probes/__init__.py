"""Linear probes: sweep, choice on validation rows, refit, and test metrics with intervals."""

from admm_softmax.probes.protocol import probe
from admm_softmax.probes.recipes import RECIPES, Recipe
from admm_softmax.probes.result import Interval, ProbeResult, Shot

__all__ = ["RECIPES", "Interval", "ProbeResult", "Recipe", "Shot", "probe"]
