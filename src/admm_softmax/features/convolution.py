"""Random convolutions: the paper's features of MNIST."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from admm_softmax._checks import check_count
from admm_softmax._parallel import check_threads, ordered_map
from admm_softmax.features.images import ImageTransformer, Shape
from admm_softmax.kernels.thresholds import repays_compiled_tanh

#: Numbers in a block of gathered pixels: 2 MB, so that a block stays in the cache.
_GATHERED_NUMBERS = 2**19

_ACTIVATIONS: dict[str, Callable[[NDArray[np.float32]], object]] = {
    "tanh": lambda maps: np.tanh(maps, out=maps),
    "relu": lambda maps: np.maximum(maps, 0, out=maps),
    "identity": lambda maps: maps,
}


class RandomConvolution(ImageTransformer):
    """Periodic convolutions of images with random filters: an extreme learning machine.

    Of an image v (h × w × c) and a filter f (a × b × c) with standard normal entries, the
    map, summed over the channels, is ::

        out[p, q] = σ( Σᵢⱼₖ f[i, j, k] · v[p − i + ⌊a/2⌋, q − j + ⌊b/2⌋, k] )

    with rows modulo h and columns modulo w. The n images (n, h, w), (n, h, w, c), or
    flattened, become n_filters·h·w columns of float32, one contiguous block of h·w
    per filter, as `operators.per_channel` takes them.

    Parameters
    ----------
    n_filters : int
        Number of filters, and so of maps.
    filter_size : int or (int, int)
        Height and width of a filter.
    image_shape : (h, w) or (h, w, c), optional
        Shape of an image, for flattened images; one entry may be −1.
    random_state : int, Generator, RandomState or None
        Seeds the filters, as in `np.random.default_rng`. None is a fixed seed, 0.
    activation : "tanh", "relu" or "identity"
        The function σ.
    n_threads : int, optional
        Threads; None takes every core. The result does not depend on it.

    Attributes
    ----------
    filters_ : array of shape (n_filters, a, b, c)
        The filters, float32.
    image_shape_ : (h, w, c)
        Shape of an image.
    n_features_in_, feature_names_in_
        As in scikit-learn; the features are the h·w·c pixels.

    Examples
    --------
    >>> import numpy as np
    >>> from admm_softmax.features import RandomConvolution
    >>> images = np.zeros((5, 28, 28))
    >>> RandomConvolution().fit_transform(images).shape
    (5, 7056)
    """

    #: `fit` learns no more than the shape of an image: `RowBlocks` may do it with one image.
    learns_only_shape = True

    def __init__(
        self,
        n_filters: int = 9,
        *,
        filter_size: int | Sequence[int] = 3,
        image_shape: Sequence[int] | None = None,
        random_state: Any = None,
        activation: Literal["tanh", "relu", "identity"] = "tanh",
        n_threads: int | None = None,
    ) -> None:
        self.n_filters = n_filters
        self.filter_size = filter_size
        self.image_shape = image_shape
        self.random_state = random_state
        self.activation = activation
        self.n_threads = n_threads

    def fit(self, X: Any, y: Any = None) -> RandomConvolution:
        """Draw the filters; of the images only the shape matters."""
        size = _filter_size(self.filter_size)
        count = check_count("n_filters", self.n_filters)
        _activation(self.activation)
        check_threads(self.n_threads)
        _, shape = self._learn(X)
        filters = _generator(self.random_state).standard_normal((count, *size, shape[2]))
        self.image_shape_, self.filters_ = shape, filters.astype(np.float32)
        return self

    def transform(self, X: Any) -> NDArray[np.float32]:
        """The maps of the images: (n, n_filters·h·w), float32."""
        rows = self._rows(X)
        count, *size, _ = self.filters_.shape
        gather = _gather(self.image_shape_, size)
        apply = _activation(self.activation, count * gather.shape[1])
        filters = self.filters_.reshape(count, len(gather))
        maps = np.empty((len(rows), count, gather.shape[1]), np.float32)

        def convolve(block: slice) -> None:
            pixels = rows[block].astype(np.float32, copy=False).take(gather, axis=1)
            np.matmul(filters, pixels, out=maps[block])
            apply(maps[block])

        step = max(1, _GATHERED_NUMBERS // gather.size)
        blocks = [slice(start, start + step) for start in range(0, len(rows), step)]
        ordered_map(convolve, blocks, check_threads(self.n_threads))
        return maps.reshape(len(rows), -1)

    def __sklearn_tags__(self) -> Any:
        """The result is float32."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags

    def _maps(self) -> tuple[str, Shape]:
        height, width, _ = self.image_shape_
        return "filter", (len(self.filters_), height, width)


def _gather(shape: Shape, size: Sequence[int]) -> NDArray[np.intp]:
    """Positions of the pixels that the entries of a filter multiply: (a·b·c) × (h·w).

    Indexing a flattened image with them gives the matrix that filters multiply. Against shifted
    sums, transforms and `scipy.ndimage` this was the fastest for small filters.
    """
    height, width, channels = shape
    a, b = size
    place = np.arange(height * width * channels).reshape(shape)
    shifted = [
        np.roll(place, (i - a // 2, j - b // 2), (0, 1)).reshape(height * width, channels).T
        for i in range(a)
        for j in range(b)
    ]
    return np.concatenate(shifted)


def _filter_size(value: Any) -> tuple[int, int]:
    pair = value if isinstance(value, tuple | list) else (value, value)
    if len(pair) != 2:
        raise ValueError(f"filter_size must be a whole number or two, got {value!r}")
    rule = "a whole number ≥ 1 or two of them"
    return check_count("filter_size", pair[0], rule), check_count("filter_size", pair[1], rule)


def _activation(name: Any, n_features: int = 0) -> Callable[[NDArray[np.float32]], object]:
    """The function that overwrites maps by their activation.

    Without AVX-512 NumPy's tanh takes most of the time of a transform, and a compiled one a fifth
    to a ninth of NumPy's. They agree to 4e-7; the number of features alone decides, so that an
    image has the same features whatever other images come with it.
    """
    if name not in _ACTIVATIONS:
        raise ValueError(f"activation must be one of {sorted(_ACTIVATIONS)}, got {name!r}")
    if name == "tanh" and repays_compiled_tanh(n_features):
        from admm_softmax.kernels.compiled.passes import tanh_in_place  # noqa: PLC0415

        return tanh_in_place
    return _ACTIVATIONS[name]


def _generator(random_state: Any) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        random_state = int(random_state.randint(2**31 - 1))
    return np.random.default_rng(0 if random_state is None else random_state)
