"""Fitted models in the formats of other libraries: ONNX, PyTorch, skops, npz."""
