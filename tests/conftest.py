"""What several test files need."""

import signal

import pytest


@pytest.fixture
def ctrl_c():
    """Python's own handler of SIGINT, also where the shell has the tests ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
