"""RandomConvolution: periodic convolutions, by definition and by Fourier transform."""

import pickle
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from admm_softmax import SoftmaxRegression, operators
from admm_softmax.features import RandomConvolution, convolution
from admm_softmax.kernels import thresholds


# scikit-learn's rows have any number of columns: an image of one row, as wide as they are.
@parametrize_with_checks([RandomConvolution(image_shape=(1, -1))])
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def images(*shape, seed=1):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def by_fourier(images, filters):
    """Periodic convolution, centred at ⌊size/2⌋, by the convolution theorem, in float64."""
    n, h, w, _ = images.shape
    count, a, b, _ = filters.shape
    kernels = np.zeros((count, h, w, images.shape[3]))
    for i in range(a):
        for j in range(b):
            kernels[:, (i - a // 2) % h, (j - b // 2) % w] += filters[:, i, j]
    product = np.einsum(
        "nhwc,khwc->nkhw", np.fft.fft2(images, axes=(1, 2)), np.fft.fft2(kernels, axes=(1, 2))
    )
    return np.fft.ifft2(product).real.reshape(n, -1)


def test_reproduces_the_features_of_the_benchmark():
    pixels = np.random.default_rng(3).random((20, 28, 28), dtype=np.float32)
    filters = np.random.default_rng(0).standard_normal((9, 3, 3)).astype(np.float32)
    expected = np.empty((20, 9, 28, 28), np.float32)
    for k, kernel in enumerate(filters):
        total = np.zeros_like(pixels)
        for i in range(3):
            for j in range(3):
                total += kernel[i, j] * np.roll(pixels, (i - 1, j - 1), (1, 2))
        expected[:, k] = np.tanh(total)
    transformer = RandomConvolution().fit(pixels)
    np.testing.assert_array_equal(transformer.filters_[..., 0], filters)
    features = transformer.transform(pixels)
    assert features.shape == (20, 7056)
    assert features.dtype == np.float32
    assert features.flags.c_contiguous
    np.testing.assert_allclose(features, expected.reshape(20, -1), atol=2e-6)


@pytest.mark.parametrize(
    ("shape", "size"),
    [
        ((28, 28, 1), 3),
        ((7, 12, 3), (3, 5)),
        ((6, 5, 2), (2, 4)),
        ((9, 4, 1), 1),
        ((3, 4, 2), (5, 7)),  # a filter larger than the image wraps around it
    ],
)
def test_is_the_periodic_convolution(shape, size):
    v = images(4, *shape)
    transformer = RandomConvolution(5, filter_size=size, activation="identity").fit(v)
    expected = by_fourier(v, transformer.filters_)
    np.testing.assert_allclose(transformer.transform(v), expected, atol=2e-5)


@pytest.mark.parametrize(
    ("activation", "function"),
    [("tanh", np.tanh), ("relu", lambda x: np.maximum(x, 0)), ("identity", lambda x: x)],
)
def test_activations(activation, function):
    v = images(3, 8, 8)
    linear = RandomConvolution(activation="identity").fit_transform(v)
    maps = RandomConvolution(activation=activation).fit_transform(v)
    # tanh over a block and over the whole may go through other vector instructions.
    np.testing.assert_allclose(maps, function(linear), rtol=1e-6, atol=1e-7)


def test_a_block_of_columns_is_a_filter():
    v = images(3, 8, 6)
    many = RandomConvolution(4).fit(v)
    one = RandomConvolution(1).fit(v)
    one.filters_ = many.filters_[2:3]
    np.testing.assert_allclose(many.transform(v)[:, 96:144], one.transform(v), atol=1e-6)


def test_flat_and_shaped_images_agree():
    v = images(6, 5, 7, 3)
    flat = v.reshape(6, -1)
    expected = RandomConvolution().fit_transform(v)
    for shape in [(5, 7, 3), (5, -1, 3), [5, 7, -1], np.array([5, 7, 3])]:
        np.testing.assert_array_equal(
            RandomConvolution(image_shape=shape).fit_transform(flat), expected
        )
    np.testing.assert_array_equal(
        RandomConvolution(image_shape=(5, 7, 3)).fit_transform(v), expected
    )
    np.testing.assert_array_equal(RandomConvolution().fit(v).transform(flat), expected)
    gray = images(6, 5, 7)
    np.testing.assert_array_equal(
        RandomConvolution().fit_transform(gray), RandomConvolution().fit_transform(gray[..., None])
    )
    np.testing.assert_array_equal(
        RandomConvolution().fit_transform(gray.tolist()), RandomConvolution().fit_transform(gray)
    )


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float64, bool])
def test_any_number_becomes_float32(dtype):
    v = np.random.default_rng(0).integers(0, 2, (3, 6, 6)).astype(dtype)
    features = RandomConvolution().fit_transform(v)
    assert features.dtype == np.float32
    np.testing.assert_array_equal(features, RandomConvolution().fit_transform(v.astype(np.float32)))


def test_bits_depend_on_the_seed_alone(monkeypatch):
    v = images(50, 9, 9)
    first = RandomConvolution().fit_transform(v)
    np.testing.assert_array_equal(RandomConvolution(random_state=0).fit_transform(v), first)
    assert not np.array_equal(RandomConvolution(random_state=1).fit_transform(v), first)
    for n_threads in (1, 3):
        again = RandomConvolution(n_threads=n_threads).fit_transform(v)
        np.testing.assert_array_equal(again, first)
    monkeypatch.setattr(
        convolution, "_GATHERED_NUMBERS", 9 * 81 * 5
    )  # other products of other shapes
    np.testing.assert_allclose(RandomConvolution().fit_transform(v), first, atol=1e-5)


def test_generators_seed_too():
    v = images(2, 6, 6)
    for make in (np.random.default_rng, np.random.RandomState):
        filters = [RandomConvolution(random_state=make(5)).fit(v).filters_ for _ in range(2)]
        np.testing.assert_array_equal(*filters)
    np.testing.assert_array_equal(
        RandomConvolution(random_state=np.random.default_rng(5)).fit(v).filters_,
        RandomConvolution(random_state=5).fit(v).filters_,
    )


def test_memory_is_the_result_and_little_more():
    v = np.zeros((2000, 28, 28), np.uint8)
    transformer = RandomConvolution(n_threads=2).fit(v)
    tracemalloc.start()
    features = transformer.transform(v)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < features.nbytes + 16e6


def test_names_and_frames():
    v = images(3, 2, 3)
    transformer = RandomConvolution(2).fit(v)
    names = transformer.get_feature_names_out()
    assert list(names[:4]) == ["filter0_0_0", "filter0_0_1", "filter0_0_2", "filter0_1_0"]
    assert len(names) == 12
    frame = transformer.set_output(transform="pandas").transform(v)
    assert list(frame.columns) == list(names)
    pixels = pd.DataFrame(v.reshape(3, -1), columns=list("abcdef"), index=[7, 8, 9])
    transformer = RandomConvolution(2, image_shape=(2, 3)).set_output(transform="pandas")
    assert list(transformer.fit_transform(pixels).index) == [7, 8, 9]
    assert list(transformer.feature_names_in_) == list("abcdef")
    assert transformer.n_features_in_ == 6
    assert transformer.image_shape_ == (2, 3, 1)


def test_clones_and_pickles():
    v = images(3, 5, 5)
    transformer = RandomConvolution(3, random_state=4, activation="relu").fit(v)
    twin = clone(transformer)
    assert twin.get_params() == transformer.get_params()
    with pytest.raises(NotFittedError):
        twin.transform(v)
    with pytest.raises(NotFittedError):
        twin.get_feature_names_out()
    copy = pickle.loads(pickle.dumps(transformer))
    np.testing.assert_array_equal(copy.transform(v), transformer.transform(v))


def test_classifies_digits_better_than_pixels_do():
    X, y = load_digits(return_X_y=True)
    X = X / 16
    L = operators.per_channel(operators.laplacian((8, 8), 1 / 8), 9) / 576
    pixels = SoftmaxRegression(1e-3, tol=1e-3)
    maps = make_pipeline(
        RandomConvolution(image_shape=(8, 8)), SoftmaxRegression(1e-3, operator=L, tol=1e-3)
    )
    scores = [m.fit(X[:1200], y[:1200]).score(X[1200:], y[1200:]) for m in (pixels, maps)]
    assert scores[1] > scores[0] + 0.02


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"n_filters": 0}, ValueError, "n_filters must be a whole number ≥ 1, got 0"),
        ({"n_filters": 2.0}, TypeError, "n_filters must be a whole number ≥ 1, got 2.0"),
        ({"filter_size": 0}, ValueError, "filter_size must be a whole number ≥ 1 or two"),
        ({"filter_size": (3, 3, 3)}, ValueError, r"filter_size must .* got \(3, 3, 3\)"),
        ({"activation": "sine"}, ValueError, r"activation must be one of \[.*got 'sine'"),
        ({"n_threads": 0}, ValueError, "n_threads must be at least 1 or None, got 0"),
        ({"image_shape": (4, 5)}, ValueError, r"image_shape is \(4, 5\), but X has .*\(5, 4, 1\)"),
    ],
)
def test_settings_are_checked(settings, error, message):
    with pytest.raises(error, match=message):
        RandomConvolution(**settings).fit(images(2, 5, 4))


@pytest.mark.parametrize(
    ("image_shape", "message"),
    [
        (None, "image_shape must be .* where images are flattened, got None for 20 columns"),
        ((3, 7), r"image_shape \(3, 7\) does not fit X, which has 20 columns"),
        ((3, -1), r"image_shape \(3, -1\) does not fit X, which has 20 columns"),
        ((-1, -1), r"image_shape must be .* got \(-1, -1\)"),
        ((20,), r"image_shape must be .* got \(20,\)"),
        (20, "image_shape must be .* got 20"),
        ((4.0, 5), r"image_shape must be .* got \(4.0, 5\)"),
        ((0, 20), r"image_shape must be .* got \(0, 20\)"),
    ],
)
def test_shapes_of_flat_images_are_checked(image_shape, message):
    with pytest.raises(ValueError, match=message):
        RandomConvolution(image_shape=image_shape).fit(images(2, 20))


def test_images_are_those_of_fit():
    transformer = RandomConvolution().fit(images(2, 4, 6))
    with pytest.raises(ValueError, match=r"images of \(6, 4, 1\), but fit was given \(4, 6, 1\)"):
        transformer.transform(images(2, 6, 4))
    with pytest.raises(ValueError, match="23 features"):
        transformer.transform(images(2, 23))
    with pytest.raises(ValueError, match="0 sample"):
        transformer.transform(images(0, 4, 6))
    with pytest.raises(ValueError, match="NaN"):
        transformer.transform(np.full((2, 4, 6), np.nan))


def test_compiled_tanh_is_that_of_numpy():
    from admm_softmax.kernels.compiled.passes import tanh_in_place

    x = np.concatenate([np.linspace(-12, 12, 100_001), np.geomspace(1e-30, 1, 1000)])
    found = np.append(x, [np.nan, np.inf, -np.inf]).astype(np.float32)
    tanh_in_place(found)
    np.testing.assert_allclose(found[:-3], np.tanh(x), rtol=1e-6, atol=1e-30)
    np.testing.assert_allclose(found[-3:], [np.nan, 1, -1], rtol=1e-6)


@pytest.mark.parametrize("compiled_from", [1, sys.maxsize], ids=["compiled", "numpy"])
def test_many_features_of_an_image_do_not_depend_on_the_others(compiled_from, monkeypatch):
    monkeypatch.setattr(thresholds, "COMPILED_FROM_FEATURES", compiled_from)
    v = np.random.default_rng(0).random((7, 28, 28), dtype=np.float32)
    wide = RandomConvolution(13).fit(v)
    linear = RandomConvolution(13, activation="identity").fit(v)
    np.testing.assert_allclose(wide.transform(v), np.tanh(linear.transform(v)), atol=1e-6)
    np.testing.assert_array_equal(wide.transform(v)[2:3], wide.transform(v[2:3]))
