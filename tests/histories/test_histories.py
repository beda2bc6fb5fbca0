"""Iterates are what they were: the first of every solver, against those stored."""

import pytest

from tests.histories import before
from tests.histories.cases import CASES
from tests.histories.compare import READS, disagreements
from tests.histories.record import as_json, load

STORED, BEFORE = load(), before.load()


def test_every_case_is_stored():
    assert sorted(STORED) == sorted(CASES)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_iterates_are_as_stored(case):
    off = disagreements(STORED[case.name], as_json(case.trace()))
    assert {name: x for name, x in off.items() if not x <= case.tolerance} == {}


@pytest.mark.parametrize("name", sorted(BEFORE))
def test_stored_iterates_are_those_before_the_rebuilding(name):
    """All but those that are listed with a reason; and what is listed does differ."""
    off = disagreements(
        before.as_counted_now(name, BEFORE[name]), before.without_start(STORED[name])
    )
    beyond = {column for column, x in off.items() if not x <= CASES[name].tolerance}
    assert bool(beyond - {*READS}) == (name in before.ANEW), beyond
    if name not in before.ANEW:
        assert bool(beyond) == (name in before.COUNTED), beyond


def test_what_was_recorded_anew_or_counted_otherwise_was_there_before():
    assert {*before.ANEW, *before.COUNTED} <= {*BEFORE}
    assert {*before.ANEW}.isdisjoint(before.COUNTED)
