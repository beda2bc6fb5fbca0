"""Rows on a Dask cluster. The only package that imports Dask.

| module        | what is in it                                                          |
|---------------|------------------------------------------------------------------------|
| `design`      | `DaskDesign`: passes and samples, from the client's side               |
| `rows`        | partitions on their workers, and row arrays beside them                |
| `cluster`     | tasks on futures: maps, tree reductions, what to do when a worker dies |
| `tasks`       | the functions that workers run, each on one partition                  |
| `collections` | partitions of arrays, frames and lists; predictions on them, lazily    |
"""

try:
    import dask  # noqa: F401
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError(
        f'Dask input needs the extra "dask" (pip install "admm-softmax[dask]"): {error}'
    ) from error

from admm_softmax.design.dask.collections import lazily, lazy_mean
from admm_softmax.design.dask.design import DaskDesign

__all__ = ["DaskDesign", "lazily", "lazy_mean"]
