"""The same rows in files of every kind."""

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import zarr
from safetensors.numpy import save_file

from admm_softmax import RowBlocks


def shards(folder, X, y, cuts=(7, 40)):
    for i, (rows, labels) in enumerate(zip(np.split(X, cuts), np.split(y, cuts), strict=True)):
        np.save(folder / f"x-{i}.npy", rows)
        np.save(folder / f"y-{i}.npy", labels)


def npy(folder, X, y):
    np.save(folder / "x.npy", X)
    return folder / "x.npy", y


def npy_pattern(folder, X, y):
    shards(folder, X, y)
    return str(folder / "x-*.npy"), str(folder / "y-*.npy")


def npy_list(folder, X, y):
    shards(folder, X, y)
    return sorted(folder.glob("x-*.npy")), y


def memmap(folder, X, y):
    npy(folder, X, y)
    return RowBlocks(np.load(folder / "x.npy", mmap_mode="r")), y


def columns(folder, X, y):
    table = {f"c{j}": X[:, j] for j in range(X.shape[1])}
    pq.write_table(pa.table({**table, "label": y}), folder / "c.parquet", row_group_size=30)
    return str(folder / "c.parquet"), "label"


def vectors(folder, X, y):
    for i, (rows, labels) in enumerate(zip(np.split(X, [50]), np.split(y, [50]), strict=True)):
        column = pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel()), X.shape[1])
        table = pa.table({"vector": column, "label": labels, "name": [str(c) for c in labels]})
        pq.write_table(table, folder / f"v-{i}.parquet", row_group_size=19)
    return str(folder / "v-*.parquet"), "label"


def dataset(folder, X, y):
    vectors(folder, X, y)
    return ds.dataset(sorted(map(str, folder.glob("v-*.parquet")))), "label"


def safetensors(folder, X, y):
    save_file({"x": X, "bias": X[0].copy()}, folder / "x.safetensors")
    return folder / "x.safetensors", y


def hdf5(folder, X, y):
    with h5py.File(folder / "x.h5", "w") as file:
        file.create_dataset("rows/x", data=X, chunks=(9, X.shape[1]), compression="gzip")
        file["y"] = y
    return folder / "x.h5", y


def h5py_dataset(folder, X, y):
    hdf5(folder, X, y)
    file = h5py.File(folder / "x.h5", "r")
    return file["rows/x"], file["y"]


def zarr_path(folder, X, y):
    zarr.create_array(folder / "x.zarr", data=X, chunks=(9, X.shape[1]))
    return str(folder / "x.zarr"), y


def zarr_array(folder, X, y):
    zarr_path(folder, X, y)
    return zarr.open(folder / "x.zarr", mode="r"), y


def function(folder, X, y):
    return RowBlocks(lambda: iter(np.split(X, [3, 3, 20])), n_rows=len(X), n_features=X.shape[1]), y


def iterable(folder, X, y):
    return RowBlocks(np.split(X, [5, 33])), y


def in_memory(folder, X, y):
    return RowBlocks(X), y


def transformed(folder, X, y):
    np.save(folder / "x.npy", X / 2)
    return RowBlocks(folder / "x.npy", transform=lambda block: 2 * block), y


KINDS = {
    maker.__name__: maker
    for maker in (
        npy, npy_pattern, npy_list, memmap, columns, vectors, dataset, safetensors, hdf5,
        h5py_dataset, zarr_path, zarr_array, function, iterable, in_memory, transformed,
    )
}  # fmt: skip
#: Those that store float16 as it is.
HALVES = [kind for kind in KINDS if kind != "function"]
