"""What is about to leave memory is counted until it has left."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from shoal.ids import Epoch, Key, TaskId
from shoal.protocol.messages import WorkerWelcome
from shoal.storage.results import Results
from shoal.storage.spilled import Spilled
from shoal.worker.machine.effects import Write
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import MachineSettings
from shoal.worker.shell.spilling import Spilling

TASK = TaskId(1)
NBYTES = 5000


class Worker:
    """One that has a disk, on which everything is at once."""

    def __init__(self) -> None:
        self.machine = WorkerMachine(MachineSettings(address="me", writable_nbytes_min=1))
        self.machine.receive([WorkerWelcome(Epoch(1), 1, 1.0)], 0.0)
        self.results = Results()
        self.results.put(TASK, Key("x"), bytes(NBYTES), NBYTES)
        self.machine.replicas_put([(TASK, Key("x"), NBYTES)], 0.0)
        self.machine.take_effects()
        self.leaving: list[int] = []
        self.has_written = asyncio.Event()
        spill = SimpleNamespace(write=self._spilled, load=None, disk=None)
        self.spilling = Spilling(
            "me", self.machine, self.results, self, lambda: cast(Any, spill), target_bytes=0
        )

    def _spilled(self, value: object, nbytes: int) -> Spilled:
        return cast(Spilled, SimpleNamespace(nbytes=nbytes, disk_nbytes=nbytes, remember=_forget))

    def leaving_nbytes(self) -> int:
        return self.machine.state.writing_nbytes + self.spilling.freeing_nbytes

    def on_disk(self, act: Callable[[], object]) -> None:
        act()
        self.leaving.append(self.leaving_nbytes())  # as whoever makes room sees it now
        self.has_written.set()

    def is_memory_short(self) -> bool:
        return False

    def on_results(self, nbytes_before: int) -> None:
        """That there are more is of no interest here."""

    def now(self) -> float:
        return 0.0


def test_what_is_written_and_not_let_go_of_yet_is_still_leaving() -> None:
    async def story() -> None:
        worker = Worker()
        assert worker.spilling.spill(NBYTES, "a test") == NBYTES
        for effect in worker.machine.take_effects():
            assert isinstance(effect, Write)
            worker.spilling.write(effect)
        async with asyncio.timeout(5):
            await worker.has_written.wait()
        assert worker.leaving == [NBYTES]
        worker.spilling.close()

    asyncio.run(story())


def _forget(value: object) -> None:
    """No file is here, so nobody asks for what it was made of."""
