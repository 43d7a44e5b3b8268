"""One cluster for all tests of this folder: two workers, processes of one thread each, on the loopback alone."""

import importlib

import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def cluster():
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address="127.0.0.1:0", silence_logs=50
    ) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    """Return a client of two workers, also after a test has killed one; both have imported what they train with."""
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=30)
        client.run(importlib.import_module, "larank.dask")
        yield client
