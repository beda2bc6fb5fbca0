"""What comes with the library, and what it does not do: no network at import or fit."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

GUARDED = """
import socket, sys

def refuse(*arguments, **settings):
    raise AssertionError(f"network: {arguments}")

socket.socket.connect = socket.socket.connect_ex = socket.socket.sendto = refuse
socket.getaddrinfo = socket.gethostbyname = socket.create_connection = refuse
calls = []
sys.addaudithook(
    lambda event, arguments: calls.append(event)
    if event.startswith(("socket.connect", "socket.getaddrinfo", "socket.gethostby", "urllib."))
    else None
)
"""
FITS = """
import tempfile
import numpy as np
import admm_softmax
from admm_softmax import SoftmaxRegression, SoftmaxRegressionCV, datasets, features, softmax_path
for name in admm_softmax.__all__:
    getattr(admm_softmax, name)
rng = np.random.default_rng(0)
X, y = rng.standard_normal((90, 5)), np.arange(90) % 3
for solver in ("auto", "admm", "lbfgs", "newton-cg", "sgd"):
    SoftmaxRegression(0.1, solver=solver, max_iter=3, tol=1.0).fit(X, y).predict_proba(X)
SoftmaxRegressionCV([0.1], cv=2).fit(X, y)
softmax_path(X, y, [0.1])
with tempfile.TemporaryDirectory() as folder:
    np.save(folder + "/x.npy", X)
    SoftmaxRegression(0.1, checkpoint=folder + "/fit").fit(folder + "/x.npy", y)
datasets.load_digits()
assert not calls, calls
print("quiet")
"""
REACHES_OUT = """
try:
    socket.create_connection(("example.org", 80))
except AssertionError:
    print("refused")
"""


def run(code):
    done = subprocess.run(
        [sys.executable, "-c", GUARDED + code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_no_network_at_import_or_fit():
    assert run(REACHES_OUT) == ["refused"]
    assert run(FITS) == ["quiet"]


def test_every_dependency_has_a_lower_bound_and_optional_ones_are_extras():
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, wanted in {"": project["dependencies"], **project["optional-dependencies"]}.items():
        for requirement in wanted:
            bounded = ">=" in requirement or "==" in requirement
            assert bounded or requirement.startswith("admm-softmax["), (name, requirement)


def test_the_policy_says_where_to_report():
    text = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "report" in text.lower()
    assert "pickle" in text
