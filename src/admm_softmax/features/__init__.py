"""Features of images: random convolutions and AlexNet, as scikit-learn transformers."""

from admm_softmax.features.alexnet import AlexNetPool5
from admm_softmax.features.convolution import RandomConvolution
from admm_softmax.features.examples import standardize_examples

__all__ = ["AlexNetPool5", "RandomConvolution", "standardize_examples"]
