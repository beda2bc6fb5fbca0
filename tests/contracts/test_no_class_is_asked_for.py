"""The library asks designs, solvers, penalties and W-steps what they can do, not what they are."""

import ast
import re
from pathlib import Path

import pytest

import admm_softmax
from admm_softmax.design import Rows
from admm_softmax.prepared import Prepared, Slot

ROOT = Path(admm_softmax.__file__).parent
DECISION = Path(__file__).parents[2] / "docs" / "decisions" / "0015-prepared.md"
FILES = {path.relative_to(ROOT).as_posix(): path for path in sorted(ROOT.rglob("*.py"))}

#: Classes behind a contract; the contract itself (`Design`, `Penalty`) may be asked for.
CONTRACTS = ("Design", "Penalty", "Rough", "Chainable", "Solver", "Strategy")
#: The parameter `penalty` of an estimator may name the usual penalty by its class.
TOLERATED = {("estimators/sklearn_parameters.py", "Tikhonov")}
#: Arrays that one call stores once, options that skl2onnx keys so, and where compiled code finds an
#: array's address and shape.
MAY_USE_ID = {"storage/bundles.py", "exchange/onnx.py", "kernels/compiled/entries.py"}
#: What must know neither the precision of numbers by their bytes, nor arrays with a row per example.
ABOVE_DESIGNS = ("solvers/", "path/", "estimators/", "probes/", "problem.py", "prepared.py")


def parsed():
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in FILES.items()}


def implementations(trees):
    """Names of the classes that inherit from one with a contract, or have its methods."""
    classes = [node for tree in trees.values() for node in ast.walk(tree) if is_class(node)]
    found, before = set(CONTRACTS), 0
    while before < len(found):
        before = len(found)
        for node in classes:
            bases = {ast.unparse(base).rsplit(".", 1)[-1] for base in node.bases}
            methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
            if bases & found or methods & {"iterates", "prepare", "precondition"}:
                found.add(node.name)
    return found - {"Design", "Penalty"}


def is_class(node):
    return isinstance(node, ast.ClassDef)


def asked_for(tree):
    """The classes in calls of isinstance and issubclass, and in comparisons of a type."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            yield from re.findall(r"\w+", ast.unparse(node.args[1]))
        if isinstance(node, ast.Compare) and ast.unparse(node.left).startswith("type("):
            yield from re.findall(r"\w+", ast.unparse(node.comparators[0]))


def test_no_implementation_of_a_contract_is_asked_for():
    trees = parsed()
    behind = implementations(trees)
    assert {"DenseDesign", "DaskDesign", "ADMM", "LBFGS", "Lasso", "Auto", "CholeskyStep"} <= behind
    found = {(name, asked) for name, tree in trees.items() for asked in asked_for(tree)}
    assert {pair for pair in found if pair[1] in behind} == TOLERATED


def test_what_is_asked_is_seen():
    text = "isinstance(x, a.DenseDesign | LBFGS)\nif type(x) is Lasso: issubclass(x, (A, B))"
    assert {*asked_for(ast.parse(text))} == {"a", "DenseDesign", "LBFGS", "A", "B", "Lasso"}


def test_identity_is_a_key():
    using = {
        name
        for name, tree in parsed().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "id"
    }
    assert using == MAY_USE_ID
    first, second = Rows([1.0], 1, None), Rows([1.0], 1, None)
    assert first.key != second.key


@pytest.mark.parametrize("word", ["itemsize", "held", "n_threads"])
def test_what_designs_hide_is_not_looked_at(word):
    """Bytes of a number, what is behind a handle, and threads of a design."""
    using = {
        f"{name}:{node.lineno}"
        for name, tree in parsed().items()
        if name.startswith(ABOVE_DESIGNS)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == word
        and ast.unparse(node.value) not in ("self", "template")
    }  # fmt: skip
    assert using == set()


def test_what_is_prepared_is_in_the_tables():
    prepared = Prepared(Rows([1.0], 1, None))
    fields = {name for name, value in vars(prepared).items() if isinstance(value, Slot)}
    assert len(fields) > 5
    page = DECISION.read_text(encoding="utf-8")
    for name in fields | {"gram", "column_squares"}:
        assert f"| `{name}` " in (Prepared.__doc__ or ""), name
        assert f"`{name}`" in page, name
