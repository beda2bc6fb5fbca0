"""What pytest collects: modules that import torch only where torch is there."""

from importlib.util import find_spec

collect_ignore_glob = (
    []
    if find_spec("torch")
    else [
        "src/admm_softmax/design/torch/*",
        "tests/design_torch/*",
    ]
)
