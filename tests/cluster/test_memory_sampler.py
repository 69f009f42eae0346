"""What a cluster's memory comes to is sampled while a block of code runs."""

import asyncio
import sys

import pytest

from shoal import Client
from shoal.client.errors import PackageLacking, UnknownMeasure, WouldNotWait
from shoal.client.sampling import MEASURES, MemorySampler
from shoal.observe.memory import MemoryState


def test_a_block_has_a_sample_at_each_end_and_those_between():
    sampler = MemorySampler()
    with Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as c:
        with sampler.sample("one", measure="managed_total", interval="1 ms"):
            future = c.submit(bytes, 1_000_000)
            c.submit(len, future).result()
        with sampler.sample(interval=60):
            pass
    one, other = sampler.samples.values()
    assert len(other) == 2
    assert len(one) >= 2
    assert one[-1][1] >= 1_000_000
    assert one[0][0] <= one[-1][0]
    frame = sampler.to_pandas(align=True)
    assert frame["one"].max() >= 1_000_000
    assert frame.index[0].total_seconds() == 0
    assert set(frame.columns) == set(sampler.samples)


def test_an_asynchronous_client_samples_by_async_with():
    async def sample():
        sampler = MemorySampler()
        async with (
            Client(asynchronous=True, n_workers=1, processes=False) as client,
            sampler.sample("one", client=client, interval=0.001),
        ):
            await client.submit(sum, [1, 2])
        return sampler.samples["one"]

    samples = asyncio.run(sample())
    assert len(samples) >= 2
    assert min(nbytes for _, nbytes in samples) > 0


def test_what_cannot_be_sampled_is_refused_with_what_can():
    with pytest.raises(UnknownMeasure, match=r"'rss'.*managed_total, optimistic, process"):
        MemorySampler().sample(measure="rss")
    with pytest.raises(ValueError, match="interval="):
        MemorySampler().sample(interval=0)
    state = MemoryState(process=1, unmanaged_old=0, managed=0, spilled=0)
    assert all(isinstance(getattr(state, measure), int) for measure in MEASURES)


@pytest.mark.parametrize(("name", "package"), [("plot", "matplotlib"), ("to_pandas", "pandas")])
def test_a_package_that_is_not_there_is_named(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(PackageLacking, match=rf"^MemorySampler\.{name}.*: pip install {package}$"):
        getattr(MemorySampler(), name)()


def test_an_asynchronous_client_is_not_left_unasked_by_with():
    async def sample():
        async with Client(asynchronous=True, n_workers=1, processes=False) as client:
            with (
                pytest.raises(WouldNotWait, match=r"sample\(\).*`async with`"),
                MemorySampler().sample("one", client=client),
            ):
                pytest.fail("the block was entered")

    asyncio.run(sample())


def test_a_client_may_be_closed_within_the_block():
    sampler = MemorySampler()
    options = {"processes": False, "dashboard_address": None}
    with Client(n_workers=1, **options) as client, sampler.sample("one", interval=60):
        client.close()
    assert len(sampler.samples["one"]) == 1
