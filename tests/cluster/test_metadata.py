"""Values left with the scheduler, and how tasks have ended, on either face."""

import pytest

from shoal import get_task_metadata
from tests.cluster.faces import ask


class Mine:
    """A class of the user's own."""

    def __eq__(self, other):
        return isinstance(other, Mine)

    __hash__ = None


async def by_keys(client):
    await ask(client.set_metadata("x", {"a": 1, "b": Mine()}))
    await ask(client.set_metadata(["x", "c", 5], (1, 2)))
    assert await ask(client.get_metadata("x")) == {"a": 1, "b": Mine(), "c": {5: (1, 2)}}
    assert await ask(client.get_metadata(["x", "c", 5])) == (1, 2)
    assert await ask(client.get_metadata(("x", "a"))) == 1
    await ask(client.set_metadata(("t", 1), "of a tuple"))
    assert await ask(client.get_metadata(("t", 1))) == "of a tuple"
    assert await ask(client.get_metadata([("t", 1)])) == "of a tuple"
    with pytest.raises(KeyError, match="no"):
        await ask(client.get_metadata(["x", "no"]))
    with pytest.raises(KeyError, match="no"):
        await ask(client.get_metadata("no"))
    assert await ask(client.get_metadata("no", None)) is None
    assert await ask(client.get_metadata(["x", "no"], default=5)) == 5
    assert set(await ask(client.get_metadata([]))) == {"x", ("t", 1)}
    with pytest.raises(ValueError, match="no place for the value"):
        await ask(client.set_metadata([], {"all": "anew"}))
    assert await ask(client.get_metadata("x")) == {"a": 1, "b": Mine(), "c": {5: (1, 2)}}


async def beside_the_scheduler(client):
    def look(dask_scheduler):
        dask_scheduler.set_metadata(["y", "z"], [3])
        return dask_scheduler.task_metadata, repr(dask_scheduler.get_metadata(["x", "b"]))

    await ask(client.set_metadata("x", {"a": 1, "b": Mine()}))
    everything, opaque = await ask(
        client.run_on_scheduler(
            lambda dask_scheduler: (
                {k: repr(v) for k, v in look(dask_scheduler)[0].items()},
                look(dask_scheduler)[1],
            )
        )
    )
    assert everything["y"] == "{'z': [3]}"
    assert opaque.startswith("<Opaque value of ")
    assert await ask(client.get_metadata(["y", "z"])) == [3]
    with pytest.raises(ValueError, match="no place for the value"):
        await ask(client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.set_metadata([])))
    assert await ask(client.get_metadata(["y", "z"])) == [3]


async def how_tasks_ended(client):
    before = client.submit(abs, -1)
    await ask(before.result())
    collected = get_task_metadata()
    if client.is_blocking:
        with collected as found:
            await _work(client)
    else:
        async with collected as found:
            await _work(client)
    assert found is collected
    assert found.state == {"good": "memory", "bad": "erred"}
    assert found.metadata == {"good": None, "bad": None}


async def _work(client):
    await ask(client.submit(abs, -1, key="good").result())
    await ask(client.submit(int, "x", key="bad").exception())


@pytest.mark.parametrize(
    "scenario", [by_keys, beside_the_scheduler, how_tasks_ended], ids=lambda s: s.__name__
)
def test_values_are_left_with_the_scheduler(play, scenario):
    play(scenario)
