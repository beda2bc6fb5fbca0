"""Rows as torch tensors on a device. The only package of designs that imports torch.

| module    | what is in it                                                                |
|-----------|------------------------------------------------------------------------------|
| `design`  | `TorchDesign`: passes and samples                                            |
| `rows`    | row arrays beside the rows of X: labels, weights, Z                          |
| `kernels` | the row kernels of `kernels.rows` and `kernels.targets`, in torch            |
| `zstep`   | the z-step of `kernels.zstep`, in torch                                      |
| `arrays`  | `DeviceArray`: a tensor that NumPy's functions take, computed on its device  |
| `factor`  | Cholesky factors on the device                                               |
"""

try:
    import torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f'tensors need the extra "torch" (pip install "admm-softmax[torch]"): {error}'
    ) from error

from admm_softmax.design.torch.design import TorchDesign

__all__ = ["TorchDesign"]
