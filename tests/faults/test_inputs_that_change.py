"""Inputs of a shuffle that are other ones when they are computed again, as a worker has died."""

import logging
import os
import signal

import dask
import numpy as np
import pytest

from shoal import Client, Event, LocalCluster
from shoal.shuffle.errors import P2PConsistencyError
from tests.marks import needs_name

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")

pytestmark = needs_name

NROWS = 500
WAIT_SECONDS = 60


def rows(seed):
    """One input partition; without a seed, another one each time."""
    keys = np.random.default_rng(seed).integers(0, 1000, NROWS)
    return pd.DataFrame({"a": keys, "b": np.ones(NROWS)})


def held_up(part):
    """Say that an output has all its rows, and wait."""
    Event("joined").set()
    assert Event("go").wait(WAIT_SECONDS)
    return part


def shuffled_through_a_death(client, seeds):
    """Futures of all outputs; a worker is killed once it is known that one has its rows."""
    pid_by_address = client.run(os.getpid)
    frame = dd.from_map(rows, seeds, meta=rows(0))
    outputs = frame.shuffle("a").map_partitions(held_up, meta=frame._meta).to_delayed()
    futures = client.compute(outputs)
    assert Event("joined", client=client).wait(WAIT_SECONDS)
    os.kill(max(pid_by_address.values()), signal.SIGKILL)
    Event("go", client=client).set()
    return futures


@pytest.fixture
def client(caplog):
    """Of two workers, each with a nanny."""
    caplog.set_level(logging.CRITICAL, "shoal")
    with (
        dask.config.set({"shoal.nanny.steady-seconds": 1e-6}),  # this is no crash loop, but us
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


def test_other_rows_are_an_error_that_names_the_input_and_never_wrong_rows(client):
    """Each of eight inputs is random; what some outputs have of the lost ones is nowhere now."""
    futures = shuffled_through_a_death(client, [None] * 8)
    with pytest.raises(P2PConsistencyError, match=r"input partition \d .*gave different rows"):
        client.gather(futures)


def test_inputs_that_are_the_same_again_give_all_rows_once(client):
    """The same death, with seeds."""
    found = pd.concat(client.gather(shuffled_through_a_death(client, range(8))))
    expected = pd.concat([rows(seed) for seed in range(8)])
    assert len(found) == 8 * NROWS
    assert found.a.value_counts().to_dict() == expected.a.value_counts().to_dict()
