"""One cluster for all tests of this folder: two workers, processes of one thread each, on the loopback alone."""

import os
import signal
import time

import pytest

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="session")
def cluster():
    import dask

    # Workers answer at once, and none of the tests needs a page to look at.
    with (
        dask.config.set({"distributed.admin.tick.interval": "500ms"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=None, silence_logs=50
        ) as cluster,
    ):
        yield cluster


@pytest.fixture
def client(cluster):
    """With two workers, also where a test has killed one."""
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2, timeout=30)
        yield client


def kill_a_worker(client):
    """kill -9, and the seconds until the scheduler knows."""
    workers = client.scheduler_info()["workers"]
    address = sorted(workers)[0]
    pid = client.run(os.getpid, workers=[address])[address]
    began = time.perf_counter()
    os.kill(pid, signal.SIGKILL)
    return time.perf_counter() - began
