"""What several test files need."""

import signal

import pytest
import scipy.linalg  # noqa: F401  (brings a BLAS of its own, which is limited with NumPy's)
from threadpoolctl import threadpool_limits

from admm_softmax import _parallel


@pytest.fixture(autouse=True, scope="session")
def _blas_on_one_thread():
    """BLAS's threads spin in each other's way where processes test side by side.

    What the library asks for itself, and processes that tests start, have more.
    """
    with threadpool_limits(1, user_api="blas"):
        yield


@pytest.fixture
def ctrl_c():
    """Python's own handler of SIGINT, also where the shell has the tests ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def threads_at_any_size(monkeypatch):
    """Small passes go to the threads as well, which they are not worth."""
    monkeypatch.setattr(_parallel, "WORTH_THREADS", 0.0)
