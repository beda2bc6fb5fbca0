"""Data sets in files, by extension: rows, labels, weights and ids, at once or block by block."""

from admm_softmax.reading.blocks import Block, blocks
from admm_softmax.reading.datasets import Dataset, read
from admm_softmax.reading.request import Request

__all__ = ["Block", "Dataset", "Request", "blocks", "read"]
