"""A design of one's own: rows in a Python list of chunks."""

import numpy as np

from admm_softmax.design import RowBlockDesign


class ChunkedDesign(RowBlockDesign):
    """X̃ = [X, 1] for an X that is a list of arrays, one below the other."""

    def __init__(self, chunks, *, intercept=True):
        self.chunks = [np.asarray(chunk, dtype=np.float64) for chunk in chunks]
        self.starts = np.cumsum([0, *map(len, self.chunks)])
        shape = int(self.starts[-1]), self.chunks[0].shape[1]
        super().__init__(shape, np.float64, intercept)

    def block(self, rows):
        """The rows of a slice: parts of the chunks that it touches."""
        parts = [
            chunk[max(0, rows.start - start) : max(0, rows.stop - start)]
            for chunk, start in zip(self.chunks, self.starts, strict=False)
            if start < rows.stop and start + len(chunk) > rows.start
        ]
        return parts[0] if len(parts) == 1 else np.concatenate(parts)
