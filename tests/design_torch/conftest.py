"""One thread of torch's per test process: its own wait in a loop, and slow the others down."""

import pytest


@pytest.fixture(autouse=True, scope="session")
def _one_thread():
    torch = pytest.importorskip("torch")
    torch.set_num_threads(1)
