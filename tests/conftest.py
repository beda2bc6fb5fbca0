"""What several test files need."""

import signal

import pytest

from admm_softmax import _parallel


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
