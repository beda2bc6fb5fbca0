"""What operators give is looked up once; what depends on the caller, every time."""

import operator

import numpy as np
import pytest
from numba import types
from numba.core.registry import cpu_target

from admm_softmax.kernels.compiled import jit
from admm_softmax.kernels.compiled.typing_once import Once, remembering, remembering_functions

TYPING = cpu_target.typing_context


@pytest.fixture
def looked_up(monkeypatch):
    """The calls that Numba itself looks up."""
    calls, original = [], type(TYPING).resolve_function_type

    def resolve(self, *call):
        calls.append(call)
        return original(self, *call)

    cpu_target.target_context.refresh()
    monkeypatch.setattr(type(TYPING), "resolve_function_type", resolve)
    return calls


@pytest.mark.parametrize("function", [operator.add, operator.mul, bool, jit.keep_small])
def test_operators_are_looked_up_once_for_each_type(function, looked_up):
    known = remembering(TYPING, f"flags for {function}")
    arity = {bool: 1, jit.keep_small: 0}.get(function, 2)
    kinds = [(kind,) * arity for kind in (types.float32, types.int64)][: 1 + (arity > 0)]
    first = [known.resolve_function_type(TYPING.resolve_value_type(function), k, {}) for k in kinds]
    n = len(looked_up)
    again = [known.resolve_function_type(TYPING.resolve_value_type(function), k, {}) for k in kinds]
    assert again == first
    assert len(looked_up) == n
    direct = [
        TYPING.resolve_function_type(TYPING.resolve_value_type(function), k, {}) for k in kinds
    ]
    assert direct == first


@pytest.mark.parametrize("function", [np.floor, max])
def test_functions_that_depend_on_their_caller_are_looked_up_again(function, looked_up):
    known, kinds = remembering(TYPING, "flags"), (types.float64,) * (1 + (function is max))
    for n in (1, 2):
        looked_up.clear()
        known.resolve_function_type(TYPING.resolve_value_type(function), kinds, {})
        assert looked_up, n


def test_functions_for_lowering_remember_by_flags():
    plus = [
        remembering_functions(TYPING, flags).resolve_value_type(operator.add)
        for flags in ("one", "two", "two")
    ]
    assert [type(one) for one in plus] == [Once] * 3
    assert plus[1] is plus[2]
    assert plus[0] != plus[1]
    args = types.float64, types.float64
    found = [one.get_call_type(TYPING, args, {}) for one in plus]
    assert found[1] is found[2]
    assert found[0] == found[1] == types.float64(*args)
    assert plus[0].get_impl_key(found[0]) == plus[1].get_impl_key(found[1])


def test_functions_for_lowering_take_what_was_found_when_types_were_inferred():
    minus, sig = TYPING.resolve_value_type(operator.neg), types.float64(types.float64)
    assert minus.get_call_type(TYPING, sig.args, {}) == sig
    once = remembering_functions(TYPING, "three").resolve_value_type(operator.neg)
    assert once.get_impl_key(sig) == minus.get_impl_key(sig)
