"""Workers on a cluster's own loop that do not start, or do not close."""

from typing import Any

import pytest

from shoal import LocalCluster, Worker
from shoal.testing.clusters import gen_test


class Unruly(Worker):
    """Does not start, or does not close, as the test wants."""

    fails: list[str] = []  # noqa: RUF012 -- of the whole test

    async def start(self) -> "Unruly":
        await super().start()
        if "start" in self.fails:
            raise LookupError("it does not start")
        return self

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        await super().close(*args, **kwargs)
        if "close" in self.fails:
            raise LookupError("it does not close")


@pytest.fixture
def fails():
    yield Unruly.fails
    Unruly.fails.clear()


def cluster_of_one() -> LocalCluster:
    return LocalCluster(
        n_workers=1,
        processes=False,
        worker_class=Unruly,
        dashboard_address=None,
        asynchronous=True,
    )


@gen_test()
async def test_one_that_does_not_start_is_closed_again_and_its_name_is_free(fails):
    async with cluster_of_one() as cluster:
        fails.append("start")
        for _ in range(2):
            with pytest.raises(LookupError, match="does not start"):
                await cluster.scale(2)
        assert len(cluster.scheduler.workers) == 1
        fails.clear()
        await cluster.scale(2)
        assert cluster.observed == {0, 1}


@gen_test()
async def test_the_scheduler_closes_though_one_can_not(fails):
    cluster = await cluster_of_one()
    fails.append("close")
    with pytest.raises(LookupError, match="does not close"):
        await cluster.close()
    assert (cluster.status, cluster.scheduler.status) == ("closed", "closed")
