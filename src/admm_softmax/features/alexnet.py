"""AlexNet up to its last pooling: the paper's features of CIFAR-10."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from admm_softmax._checks import check_count
from admm_softmax._parallel import check_threads, ordered_map
from admm_softmax.datasets import DatasetError, alexnet_weights
from admm_softmax.datasets.alexnet import PARAMETER_SHAPES
from admm_softmax.features.images import ImageTransformer, Shape
from admm_softmax.progress import Bar
from admm_softmax.storage.arrays import digest, load, save

_MEAN = np.array((0.485, 0.456, 0.406), np.float32)
_STD = np.array((0.229, 0.224, 0.225), np.float32)
_SIDE = 227
_MAPS = (256, 6, 6)

#: What cache files are called; the number changes when the computation does.
_KIND = "alexnet-pool5-1"


class _Layer(NamedTuple):
    """A convolution; `pooled` if 3 × 3 maxima at stride 2 follow the ReLU."""

    stride: int
    padding: int
    pooled: bool


_LAYERS = (
    _Layer(4, 2, True),
    _Layer(1, 2, True),
    _Layer(1, 1, False),
    _Layer(1, 1, False),
    _Layer(1, 1, True),
)


class AlexNetPool5(ImageTransformer):
    """The 256 × 6 × 6 outputs of AlexNet's fifth pooling, for RGB images of any size.

    An image is resized to 227 × 227 (bilinear, half-pixel centres, no antialiasing),
    divided by 255 and normalised by the mean and standard deviation of ImageNet's
    colours; then ::

        convolution            padding   then
        64 × 3 × 11 × 11, /4         2   ReLU, 3 × 3 maxima at stride 2
        192 × 64 × 5 × 5             2   ReLU, 3 × 3 maxima at stride 2
        384 × 192 × 3 × 3            1   ReLU
        256 × 384 × 3 × 3            1   ReLU
        256 × 256 × 3 × 3            1   ReLU, 3 × 3 maxima at stride 2

    The n images (n, h, w, 3), or flattened, become 9216 columns of float32: one contiguous
    block of 36 per channel, as `operators.per_channel` takes them. Computed by torch:
    `pip install 'admm-softmax[torch]'`. The paper took MATLAB's AlexNet, with grouped
    convolutions and local response normalisation: the sizes agree, accuracies differ a
    little.

    Parameters
    ----------
    weights : mapping of ten arrays, optional
        The network's parameters (not sample weights; the name is torchvision's): kernel and bias
        of the five convolutions, in order; a kernel is shaped as above (out × in × height ×
        width). None loads `admm_softmax.datasets.alexnet_weights()`.
    image_shape : (h, w, 3), optional
        Shape of an image, for flattened images; one entry may be −1.
    batch_size : int
        Images per batch, in each thread; changes the result by rounding at most.
    cache_dir : path, optional
        Where to keep results: one file per set of images and parameters, named by their
        SHA-256. A damaged file is computed again.
    n_threads : int, optional
        Threads; None takes every core. The result does not depend on it.
    verbose : bool
        Show progress.

    Attributes
    ----------
    image_shape_ : (h, w, 3)
        Shape of an image.
    n_features_in_, feature_names_in_
        As in scikit-learn; the features are the h·w·3 pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from admm_softmax.features import AlexNetPool5
    >>> images = np.zeros((2, 32, 32, 3), dtype=np.uint8)
    >>> AlexNetPool5().fit_transform(images).shape  # doctest: +SKIP
    (2, 9216)
    """

    def __init__(
        self,
        weights: Mapping[str, Any] | None = None,
        *,
        image_shape: Sequence[int] | None = None,
        batch_size: int = 16,
        cache_dir: str | os.PathLike[str] | None = None,
        n_threads: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.weights = weights
        self.image_shape = image_shape
        self.batch_size = batch_size
        self.cache_dir = cache_dir
        self.n_threads = n_threads
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> AlexNetPool5:
        """Store the shape of the images; nothing is learnt from their content."""
        check_count("batch_size", self.batch_size)
        check_threads(self.n_threads)
        rows, shape = self._learn(X)
        _check_bytes(rows)
        if shape[2] != 3:
            raise ValueError(f"images must have 3 channels (RGB), got images of {shape}")
        self.image_shape_ = shape
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The features of the images: (n, 9216), float32."""
        images = _check_bytes(self._rows(X)).reshape(-1, *self.image_shape_)
        parameters = _check_parameters(_pretrained() if self.weights is None else self.weights)
        if self.cache_dir is None:
            return self._compute(images, parameters)
        name = f"{_KIND}-{digest(parameters)}-{digest([images])}.npy"
        path = Path(self.cache_dir) / name
        features = load(path, (len(images), prod(_MAPS)), np.float32)
        if features is None:
            features = self._compute(images, parameters)
            try:
                save(path, features)
            except OSError as error:  # the features, minutes of work, are still returned
                warnings.warn(f"AlexNetPool5: no cache file written: {error}", stacklevel=2)
        return features

    def __sklearn_tags__(self) -> Any:
        """The result is float32, whatever comes in."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _maps(self) -> tuple[str, Shape]:
        return "pool5_", _MAPS

    def _compute(
        self, images: NDArray[np.uint8], parameters: list[NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        torch = _torch()
        step = check_count("batch_size", self.batch_size)
        tensors = [_channels_last(torch, torch.tensor(array)) for array in parameters]
        features = np.empty((len(images), *_MAPS), np.float32)

        def compute(batch: slice) -> None:
            torch.set_num_threads(1)  # a setting of each thread
            with torch.inference_mode():
                maps = _pool5(torch, _input(torch, images[batch]), tensors)
            features[batch] = maps.numpy()
            bar.advance(by=len(maps))

        batches = [slice(start, start + step) for start in range(0, len(images), step)]
        with _same_threads(torch), Bar(bool(self.verbose), "AlexNet", len(images)) as bar:
            ordered_map(compute, batches, check_threads(self.n_threads))
        return features.reshape(len(images), -1)


def _input(torch: Any, images: NDArray[np.uint8]) -> Any:
    """Normalised, resized images: (n, 3, 227, 227).

    Normalised before resizing: the result is the same, as bilinear interpolation averages
    pixels, and there are fewer pixels.
    """
    colours = (images.astype(np.float32) / np.float32(255) - _MEAN) / _STD
    x = torch.from_numpy(np.ascontiguousarray(colours.transpose(0, 3, 1, 2)))
    x = torch.nn.functional.interpolate(
        x, (_SIDE, _SIDE), mode="bilinear", align_corners=False, antialias=False
    )
    return _channels_last(torch, x)


def _pool5(torch: Any, x: Any, parameters: Sequence[Any]) -> Any:
    """The network on a batch: (n, 256, 6, 6)."""
    functions = torch.nn.functional
    for k, layer in enumerate(_LAYERS):
        kernel, bias = parameters[2 * k : 2 * k + 2]
        x = functions.conv2d(x, kernel, bias, layer.stride, layer.padding).relu_()
        if layer.pooled:
            x = functions.max_pool2d(x, 3, 2)
    return x


def _channels_last(torch: Any, x: Any) -> Any:
    """x with its channels last in memory, which makes convolutions a third faster."""
    return x.contiguous(memory_format=torch.channels_last) if x.ndim == 4 else x


def _check_bytes(rows: NDArray[Any]) -> NDArray[np.uint8]:
    if rows.dtype != np.uint8:
        raise TypeError(f"images must be uint8, RGB from 0 to 255, got {rows.dtype}")
    return rows


def _check_parameters(parameters: Any) -> list[NDArray[np.float32]]:
    if not isinstance(parameters, Mapping):
        raise TypeError(f"weights must be a mapping of ten arrays, got {type(parameters).__name__}")
    if len(parameters) != len(PARAMETER_SHAPES):
        raise ValueError(
            f"weights must be ten arrays (kernel, bias, kernel, …), got {len(parameters)}"
        )
    arrays = []
    for (name, value), shape in zip(parameters.items(), PARAMETER_SHAPES.values(), strict=True):
        array = np.asarray(value, np.float32)
        if array.shape != shape:
            raise ValueError(f"weights[{name!r}] must have the shape {shape}, got {array.shape}")
        if not np.isfinite(array).all():
            raise ValueError(f"weights[{name!r}] must be finite, got NaN or infinity")
        arrays.append(array)
    return arrays


def _pretrained() -> Mapping[str, Any]:
    try:
        return alexnet_weights()
    except DatasetError as error:
        raise RuntimeError(
            f"AlexNetPool5 found no pre-trained parameters: give it `weights`, ten arrays.\n{error}"
        ) from error


def _torch() -> Any:
    try:
        import torch  # noqa: PLC0415
    except ImportError as error:
        raise ImportError("AlexNetPool5 needs torch: pip install 'admm-softmax[torch]'") from error
    return torch


@contextmanager
def _same_threads(torch: Any) -> Iterator[None]:
    """Restore torch's number of threads afterwards.

    Within, batches run in our threads, with one torch thread each: as fast as torch's own
    threads on idle cores, faster on busy ones, and the same bits for any number of them.
    """
    before = torch.get_num_threads()
    try:
        yield
    finally:
        torch.set_num_threads(before)
