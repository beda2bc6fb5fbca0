"""PyTorch: a fitted classifier as `nn.Linear`, and files of tensors."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from admm_softmax.exchange.linear import linear_of
from admm_softmax.storage.atomic import replacing


def to_linear(model: Any) -> Any:
    """`torch.nn.Linear` with d inputs and K outputs, whose softmax are the probabilities."""
    try:
        import torch  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("to_torch() needs PyTorch: pip install 'admm-softmax[torch]'") from error
    W, b, _ = linear_of(model)
    layer = torch.nn.Linear(*W.shape, dtype=torch.float64 if W.dtype == np.float64 else None)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(np.ascontiguousarray(W.T)))
        layer.bias.copy_(torch.from_numpy(b.copy()))
    return layer.eval()


def read(path: Path) -> Any:
    """What a .pt file holds, in this machine's memory; code in it is refused, not run."""
    try:
        import torch  # noqa: PLC0415
    except ImportError as error:
        raise ImportError(
            f"reading {path} needs torch: pip install 'admm-softmax[torch]'"
        ) from error
    return torch.load(path, map_location="cpu", weights_only=True)


def write(model: Any, path: Path) -> None:
    """Write the layer's weight and bias to a .pt or a .safetensors file."""
    tensors = to_linear(model).state_dict()
    with replacing(path) as part:
        if path.suffix.lower() == ".safetensors":
            try:
                from safetensors.torch import save  # noqa: PLC0415
            except ImportError as error:
                raise ImportError(
                    "safetensors files need safetensors: pip install 'admm-softmax[files]'"
                ) from error
            part.write_bytes(save(tensors))
        else:
            import torch  # noqa: PLC0415

            buffer = BytesIO()  # so that a full disk is an OSError, and not one of torch's own
            torch.save(tensors, buffer)
            part.write_bytes(buffer.getvalue())
