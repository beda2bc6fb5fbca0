"""What transformers of images share: the shape of an image, the names of the features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

#: Height, width, channels.
Shape = tuple[int, int, int]

_SHAPE_RULE = "(height, width) or (height, width, channels), of which one may be -1"


class ImageTransformer(TransformerMixin, BaseEstimator, ABC):
    """A transformer from images to maps: (n, h, w, c) to (n, m·h'·w'), map by map.

    Images come as (n, h, w), as (n, h, w, c), or flattened in C order with `image_shape`
    given. A subclass has the parameter `image_shape` and says what its maps are.
    """

    image_shape: Sequence[int] | None
    image_shape_: Shape

    def get_feature_names_out(self, input_features: Any = None) -> Any:
        """Names such as "filter0_3_5": map, row, column. `input_features` is ignored."""
        check_is_fitted(self)
        name, (count, height, width) = self._maps()
        return np.array(
            [
                f"{name}{k}_{i}_{j}"
                for k in range(count)
                for i in range(height)
                for j in range(width)
            ],
            dtype=object,
        )

    @abstractmethod
    def _maps(self) -> tuple[str, Shape]:
        """The name of a map, and number, height and width of the maps."""

    def _learn(self, X: Any) -> tuple[NDArray[Any], Shape]:
        """Check the images of `fit`; return them flattened, and the shape of one."""
        X, shape = _flattened(X)
        rows: NDArray[Any] = validate_data(self, X)
        if self.image_shape is None:
            if shape is None:
                raise ValueError(
                    f"image_shape must be {_SHAPE_RULE} where images are flattened, got None for "
                    f"{rows.shape[1]} columns"
                )
            return rows, shape
        wanted = _resolve(self.image_shape, rows.shape[1])
        if shape is not None and shape != wanted:
            raise ValueError(f"image_shape is {self.image_shape}, but X has images of {shape}")
        return rows, wanted

    def _rows(self, X: Any) -> NDArray[Any]:
        """Check the images of `transform` and return them flattened: (n, h·w·c)."""
        check_is_fitted(self)
        X, shape = _flattened(X)
        if shape is not None and shape != self.image_shape_:
            raise ValueError(f"X has images of {shape}, but fit was given {self.image_shape_}")
        rows: NDArray[Any] = validate_data(self, X, reset=False)
        return rows


def _flattened(X: Any) -> tuple[Any, Shape | None]:
    """X with one row per image, and the shape of an image unless X was flattened already."""
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    if getattr(X, "ndim", 2) not in (3, 4):
        return X, None
    X = np.asarray(X)
    _, height, width, channels = (*X.shape, 1)[:4]
    return X.reshape(len(X), height * width * channels), (height, width, channels)


def _resolve(image_shape: Any, n_columns: int) -> Shape:
    """The shape of an image that fills `n_columns`."""
    sizes = tuple(image_shape) if np.iterable(image_shape) else (image_shape,)
    unknown = sizes.count(-1)
    whole = all(isinstance(size, int | np.integer) and (size > 0 or size == -1) for size in sizes)
    if len(sizes) not in (2, 3) or not whole or unknown > 1:
        raise ValueError(f"image_shape must be {_SHAPE_RULE}, got {image_shape!r}")
    known = prod(int(size) for size in sizes if size != -1)
    if n_columns % known or (not unknown and known != n_columns):
        raise ValueError(f"image_shape {image_shape} does not fit X, which has {n_columns} columns")
    height, width, channels = (
        *(n_columns // known if size == -1 else int(size) for size in sizes),
        1,
    )[:3]
    return height, width, channels
