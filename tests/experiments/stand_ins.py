"""Small stand-ins for the images, their features and AlexNet's coefficients."""

import numpy as np

from admm_softmax import operators
from admm_softmax.datasets import Images
from admm_softmax.experiments import data as data_sets
from admm_softmax.experiments.data import Data, Part


def small_data(n=240, d=12):
    random = np.random.default_rng(0)
    centres = random.standard_normal((10, d))

    def part(count, noise):
        y = np.arange(count) % 10
        X = centres[y] + noise * random.standard_normal((count, d))
        return Part(X.astype(np.float32), y)

    L = data_sets._with_intercept(operators.laplacian((3, 4)))
    return Data(part(n, 0.6), part(100, 0.6), part(100, 0.6), L)


def small_images(name):
    labels = np.repeat(np.arange(10), 6)
    shape = (60, 28, 28) if name == "mnist" else (60, 32, 32, 3)
    images = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    names = tuple("abcdefghij")
    return Images(name, "made up", names, images, labels, images, labels)


def zero_weights():
    shapes = [(64, 3, 11, 11), (192, 64, 5, 5), (384, 192, 3, 3), (256, 384, 3, 3)]
    shapes.append((256, 256, 3, 3))
    return {
        f"{name}{k}": np.zeros(size, np.float32)
        for k, shape in enumerate(shapes)
        for name, size in (("weight", shape), ("bias", shape[:1]))
    }
