"""Clusters: one in this process for most tests, one of processes for those that kill workers."""

import logging
import os
from contextlib import contextmanager

import pytest

pytest.importorskip("distributed")

from distributed import Client, LocalCluster


@pytest.fixture(autouse=True, scope="session")
def _quiet():
    logging.getLogger("distributed").setLevel(logging.CRITICAL)


@contextmanager
def in_this_process():
    """Two threads in this process, without network."""
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address="127.0.0.1:0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    """One cluster for all tests of a file."""
    with in_this_process() as client:
        yield client


@pytest.fixture
def new_client():
    """A cluster that has seen no other test: its tasks can be counted."""
    with in_this_process() as client:
        yield client


@pytest.fixture
def processes():
    """Two worker processes with nannies, on the loopback interface.

    New for each test: a nanny whose worker is killed twice in short order may give up.
    """
    before = dict(os.environ)  # a nanny sets the number of BLAS threads, here too
    with (
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client
    os.environ.clear()
    os.environ.update(before)
