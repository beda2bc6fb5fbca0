"""One name, one meaning: no two modules of the library set a constant of the same name."""

import ast
from collections import defaultdict
from pathlib import Path

import admm_softmax

ROOT = Path(admm_softmax.__file__).parent
#: Names that are the same thing in each module: shapes in checks, type variables, the place of the
#: compiled twins, and the two experiments of the paper beside the data sets that they are named for.
LOCAL = {"D", "K", "T", "_TWINS", "MNIST", "CIFAR10"}


def constants(text):
    """The names in capitals that a module sets."""
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets = [node.target]
        else:
            continue
        for target in targets:
            for name in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(name, ast.Name) and name.id.isupper():
                    yield name.id


def repeated(texts):
    """Names that several modules set, with these modules."""
    places = defaultdict(set)
    for module, text in texts.items():
        for name in constants(text):
            places[name].add(module)
    return {name: sorted(found) for name, found in places.items() if len(found) > 1}


def test_a_constant_is_set_in_one_module():
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(ROOT.rglob("*.py"))
    }
    found = {name: places for name, places in repeated(texts).items() if name not in LOCAL}
    assert not found, f"constants that several modules set: {found}"


def test_a_repeated_constant_is_found():
    texts = {"a.py": "LIMIT, OTHER = 1, 2", "b.py": "LIMIT: int = 1", "c.py": "limit = 3"}
    assert repeated(texts) == {"LIMIT": ["a.py", "b.py"]}
