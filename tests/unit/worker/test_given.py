"""A worker that keeps its results in a mapping of the user's."""

from __future__ import annotations

from collections import UserDict
from typing import Any

from shoal.ids import TaskId
from shoal.observe.status import Status
from shoal.protocol.messages import FreeReplicas, TaskFailed, TaskFinished
from shoal.protocol.payload import InputRef, load
from tests.unit.worker.fake_scheduler import FakeScheduler, run, worker_of
from tests.until import until


class Brittle(UserDict[Any, Any]):
    """Has lost a value, and can't do what it offers."""

    fast = True

    def evict(self) -> int:
        raise OSError("there is no other shelf")

    def __getitem__(self, key: Any) -> Any:
        if key == "key-2":
            raise OSError("the shelf has fallen down")
        return super().__getitem__(key)


def test_results_are_kept_in_a_mapping_of_the_users() -> None:
    """What that raises is the error of the run that needs the value, and the worker goes on."""

    async def scene() -> None:
        scheduler = await FakeScheduler().start()
        async with worker_of(scheduler, data=Brittle) as worker:
            assert type(worker.data) is Brittle
            for i in range(5):
                scheduler.run(worker, abs, -i, task=i)
                await scheduler.hear(worker, TaskFinished)
            assert set(worker.data) == {f"key-{i}" for i in range(5)}
            assert worker.feed.spill(10**6, "a test") == 0
            scheduler.run(worker, str, InputRef(0), task=100, inputs=[TaskId(3)])
            finished = await scheduler.hear(worker, TaskFinished)
            assert finished.value is not None
            assert load(finished.value) == "3"
            scheduler.run(worker, str, InputRef(0), task=101, inputs=[TaskId(2)])
            failed = await scheduler.hear(worker, TaskFailed)
            assert "the shelf has fallen down" in failed.failure.text
            scheduler.say(worker, FreeReplicas([TaskId(3)]))
            await until(lambda: "key-3" not in worker.data)
            assert worker.status is Status.running
        await scheduler.close()

    run(scene())
