"""Room in a worker's memory: what runs are taken to need, and how some is made."""

from collections.abc import Callable
from typing import Any

from shoal.ids import CodeId, Epoch, Key, RunId, TaskId
from shoal.protocol.messages import RunTask, WorkerWelcome
from shoal.storage.results import Results
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import MachineSettings, Run
from shoal.worker.policies.making_room import (
    SENDING_SECONDS_MAX,
    STANDSTILL_SECONDS,
    TRIM_BYTES,
    TRIM_PAUSE_SECONDS,
)
from shoal.worker.policies.room import ARGUMENT_BYTES_MIN, Room
from shoal.worker.shell.making_room import RoomHands

MIB = 1 << 20
BOUND = 100 * MIB


def a_run(key: str, argument: bytes = b"") -> RunTask:
    return RunTask(TaskId(ord(key)), RunId(1), Key(key), CodeId(1), argument, 0.0, ord(key))


def kind_of(run: Run) -> str:
    return run.key


def test_what_is_known_of_a_kind_counts_and_an_argument_that_came_along_is_the_least() -> None:
    argument = bytes(2 * ARGUMENT_BYTES_MIN)
    room = Room(BOUND, 1, {"known": 5 * MIB, "light": 0}, kind_of)
    assert room.growth_bytes(Run(RunTask(*_columns("known", argument)))) == 5 * MIB
    assert room.growth_bytes(Run(RunTask(*_columns("light", argument)))) == len(argument)
    assert room.growth_bytes(Run(RunTask(*_columns("new", argument)))) == len(argument)
    assert room.growth_bytes(Run(RunTask(*_columns("new", b"small")))) == 0


def _columns(key: str, argument: bytes) -> tuple[Any, ...]:
    return TaskId(1), RunId(1), Key(key), CodeId(1), argument, 0.0, 1


def test_room_is_near_as_soon_as_all_threads_might_fill_it() -> None:
    room = Room(BOUND, 4, {"x": 20 * MIB}, kind_of)
    room.look(19 * MIB, 0, 0)
    assert not room.is_near
    room.look(21 * MIB, 0, 0)
    assert room.is_near
    room.look(0, 0, 21 * MIB)
    assert room.is_near


class FakeWorker:
    """A worker that has a machine and no disk: notes what it is to do."""

    def __init__(self) -> None:
        self.machine = WorkerMachine(MachineSettings(address="me"))
        self.machine.receive([WorkerWelcome(Epoch(1), 1, 1.0)], 0.0)
        self.machine.limit_memory(Room(BOUND, 1, {"x": 50 * MIB, "y": 50 * MIB}, kind_of))
        self.results = Results()
        self.leaving_nbytes = 0
        self.is_sending = False
        self.server = self
        self.process = 40 * MIB
        self.time = 1.0
        self.did: list[object] = []
        self.spillable = 0
        self.trimmed: list[Callable[[Any], None]] = []
        self.worked = 0.0
        self.maker = RoomHands(
            self, self._aside, lambda: self.process, lambda: 0, lambda: self.worked
        )
        self.maker.look()

    def _aside(self, function: Callable[[], Any], then: Callable[[Any], None]) -> None:
        self.did.append(function.__name__)
        self.trimmed.append(then)

    def spill(self, nbytes: int, why: str) -> int:
        begun = min(self.spillable, nbytes)
        self.spillable -= begun
        self.leaving_nbytes += begun
        self.did.append(("spill", nbytes // MIB))
        return begun

    def on_looked(self, process_bytes: int | None = None) -> None:
        self.maker.look(process_bytes)
        self.perform()

    def now(self) -> float:
        return self.time

    def perform(self) -> None:
        self.did += [type(effect).__name__ for effect in self.machine.take_effects()]
        self.maker.make()

    def run(self, *keys: str) -> None:
        self.machine.receive([a_run(key) for key in keys], 0.0)
        self.maker.look()
        self.perform()


def test_what_is_lacking_is_written_and_no_more_while_that_leaves() -> None:
    worker = FakeWorker()
    worker.results.nbytes, worker.process = 50 * MIB, 90 * MIB
    worker.spillable = 100 * MIB
    worker.run("x")
    assert worker.did == [("spill", 40)]
    worker.perform()
    assert worker.did == [("spill", 40)]
    worker.leaving_nbytes, worker.results.nbytes, worker.process = 0, 10 * MIB, 50 * MIB
    worker.on_looked()
    assert worker.did[1:] == ["StartRuns"]


def test_what_is_free_is_given_back_first_and_not_over_and_over() -> None:
    worker = FakeWorker()
    worker.process = 60 * MIB + TRIM_BYTES
    worker.run("x")
    assert worker.did == ["give_back"]
    worker.perform()
    assert worker.did == ["give_back"]  # which goes on
    worker.process = 40 * MIB
    worker.trimmed.pop()(True)
    assert worker.did == ["give_back", "StartRuns"]


def test_what_can_be_had_neither_way_is_done_without() -> None:
    worker = FakeWorker()
    worker.process = 60 * MIB + TRIM_BYTES
    worker.run("x", "y")
    worker.trimmed.pop()(True)  # it did not help
    assert worker.did == ["give_back", ("spill", 26), "StartRuns"]
    worker.time += TRIM_PAUSE_SECONDS
    worker.perform()
    assert worker.did[3:] == [("spill", 76)]  # one goes on; what was not given is not asked for


def test_what_is_being_sent_is_waited_for_but_not_for_ever() -> None:
    worker = FakeWorker()
    worker.process, worker.is_sending = 54 * MIB, True
    worker.run("x")
    worker.time += 0.9 * SENDING_SECONDS_MAX
    worker.perform()
    assert "StartRuns" not in worker.did
    worker.time += 0.2 * SENDING_SECONDS_MAX
    worker.perform()
    assert worker.did[-1] == "StartRuns"


def test_a_run_that_stands_still_keeps_nobody_out_for_ever() -> None:
    """x may be waiting for an event that y sets, of which its worker knows nothing."""
    worker = FakeWorker()
    worker.run("x")
    worker.process = 90 * MIB
    worker.run("y")
    worker.trimmed.pop()(True)  # which did not help
    assert worker.did.count("StartRuns") == 1
    worker.time += 0.9 * STANDSTILL_SECONDS
    worker.on_looked()
    assert worker.did.count("StartRuns") == 1
    worker.time += 0.2 * STANDSTILL_SECONDS
    worker.on_looked()
    assert worker.did.count("StartRuns") == 2


def test_a_run_that_works_is_waited_for_however_long_it_takes() -> None:
    worker = FakeWorker()
    worker.run("x")
    worker.process = 90 * MIB
    worker.run("y")
    worker.trimmed.pop()(True)  # which did not help
    for _ in range(30):
        worker.time += 0.2 * STANDSTILL_SECONDS
        worker.worked += 0.1 * STANDSTILL_SECONDS
        worker.on_looked()
    assert worker.did.count("StartRuns") == 1
