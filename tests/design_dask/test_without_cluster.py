"""Dask data where there is no cluster, or no Dask."""

import subprocess
import sys

import dask.array as da
import numpy as np
import pytest

from admm_softmax import SoftmaxRegression
from admm_softmax.design import is_dask


def test_a_client_is_asked_for():
    with pytest.raises(
        ValueError, match=r"need a distributed.Client: create one before .* got none"
    ):
        SoftmaxRegression().fit(da.ones((4, 2)), np.arange(4) % 2)


@pytest.mark.parametrize("data", [np.ones((2, 2)), [[1.0, 2.0]], [], "text", None, da.Array])
def test_other_data_are_not_taken_for_dask(data):
    assert not is_dask(data)


def test_dask_is_loaded_for_dask_data_alone_and_missed_by_name():
    code = (
        "import sys; sys.modules['distributed'] = None\n"
        "import numpy as np\n"
        "from admm_softmax import SoftmaxRegression\n"
        "SoftmaxRegression().fit(np.eye(4), [0, 1, 0, 1])\n"
        "assert 'dask' not in sys.modules\n"
        "try:\n    import admm_softmax.design.dask\n"
        "except ImportError as error:\n    print(error)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'pip install "admm-softmax[dask]"' in found.stdout
