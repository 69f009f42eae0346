"""What a worker of the simulation does for shuffles: it cuts, asks for shards, and joins them.

The value of an unpack is made of the values of all transfers, in the order of input partitions.  So
a partition that came twice, not at all, or of another shuffle shows like any wrong value.
"""

import pickle
from collections.abc import Callable, Sequence
from struct import pack

from shoal.ids import Key, TaskId
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.directions import answered
from shoal.protocol.messages import Input, Message
from shoal.protocol.shuffles import (
    DefineShuffles,
    LocateShards,
    ShardHolder,
    ShardsJoined,
    ShardsLocated,
    ShardsMade,
    ShuffleDefinition,
)
from shoal.sim.footprints import Owner
from shoal.sim.oracle import Instance
from shoal.sim.specs import TaskSpec, Value, compute
from shoal.sim.wire import FROM_WORKER
from shoal.worker.model.entities import RESCHEDULED, Run, RunDeprived, RunEnded

TRANSFER, BARRIER, UNPACK = "transfer", "barrier", "unpack"
"""Roles of tasks."""

ROWS = 100
"""Of each input partition."""

Then = Callable[[list[int]], None]
"""Gets the fingerprints of all inputs of a run."""


def definitions(tasks: Sequence[TaskSpec]) -> list[Message]:
    """What a client says before it submits these: which of them are barriers."""
    there = {task.key for task in tasks}
    shuffles = [
        ShuffleDefinition(
            task.key,
            task.key,
            len([key for key in task.inputs if key in there]),
            task.noutputs,
            "table",
            {
                other.key: other.partition
                for other in tasks
                if other.role == UNPACK and task.key in other.inputs
            },
        )
        for task in tasks
        if task.role == BARRIER
    ]
    return [DefineShuffles(shuffles)] if shuffles else []


def digest_of(value: Value) -> int:
    """Which row of an input partition went where."""
    return (value.fingerprint + value.variant) % (1 << 64)


class Shuffling:
    """The part of one worker."""

    def __init__(self, worker: Owner, ended: Callable[[RunEnded], None]) -> None:
        """`ended`: told of a run that ended without a result."""
        self._worker = worker
        self._ended = ended
        self._calls: dict[int, Callable[[ShardsLocated | None], None]] = {}
        self._next_request = 1

    def say(self, message: Message) -> None:
        """Tell the scheduler, if there is one."""
        worker = self._worker
        if not worker.end.is_closed:
            worker.stage.say(worker.end, [message], FROM_WORKER)

    def cut(self, run: Run, spec: TaskSpec, value: Value, nth: int) -> Value:
        """A transfer ends, for the so many-th time: say what it has cut; returns that."""
        if spec.is_fickle:
            value = value._replace(variant=nth)
        share = value.nbytes // max(1, spec.noutputs)
        self.say(
            ShardsMade(
                run.task,
                run.message.run,
                spec.shuffle,
                spec.partition,
                ROWS,
                digest_of(value),
                share * spec.noutputs,
                pack(f"<{spec.noutputs}Q", *[share] * spec.noutputs),
            )
        )
        return value

    def hear(self, message: Message) -> bool:
        """Whether that is an answer to a call of ours."""
        if not isinstance(message, Answer | Refusal):
            return False
        then = self._calls.pop(message.request, None)
        if then is not None:
            then(answered(LocateShards, message) if isinstance(message, Answer) else None)
        return True

    def connection_lost(self) -> None:
        """Nobody will answer."""
        calls, self._calls = self._calls, {}
        for then in calls.values():
            then(None)

    def locate(self, id: str, epoch: int, then: Callable[[ShardsLocated | None], None]) -> None:
        """Ask where the shards are; `then` gets None if they are nowhere."""
        request = self._next_request
        self._next_request += 1
        self._calls[request] = then
        if self._worker.end.is_closed:
            self.connection_lost()
        else:
            self.say(LocateShards(request, id, epoch))

    def joins(self, run: Run, spec: TaskSpec) -> bool:
        """Whether a run needs shards: an unpack that has a barrier among its inputs."""
        return spec.role == UNPACK and any(map(self.is_barrier, run.message.inputs))

    def is_barrier(self, item: TaskId | Input) -> bool:
        """Whether an input is the barrier of a shuffle."""
        return self.instance_of(item) is not None

    def instance_of(self, item: TaskId | Input) -> Instance | None:
        """What is known of an input that is a barrier, by who knows what must come out."""
        if not isinstance(item, Input):
            return None
        instance = self._worker.stage.oracle.by_task.get(item.task)
        is_barrier = instance is not None and instance.spec.role == BARRIER
        return instance if is_barrier else None

    def join(self, run: Run, spec: TaskSpec, others: Callable[[int], int], then: Then) -> None:
        """Find the shards that a run needs, one shuffle after the other.

        Args:
            others: the fingerprint of an input that is no barrier.
            then: gets those of all inputs.
        """
        _Joining(self, self._worker, run, spec, others, then).go_on()

    def end(self, ended: RunEnded) -> None:
        """A run ends without its shards."""
        self._ended(ended)


class _Joining:
    """One run on its way to all that it needs."""

    def __init__(
        self,
        shuffling: Shuffling,
        worker: Owner,
        run: Run,
        spec: TaskSpec,
        others: Callable[[int], int],
        then: Then,
    ) -> None:
        self.shuffling = shuffling
        self.worker = worker
        self.run = run
        self.spec = spec
        self.others = others
        self.then = then
        self.prints: list[int] = []  # of the inputs so far
        self._epoch = worker.stage.epoch  # of the scheduler that says where shards are

    def go_on(self) -> None:
        """With the next input."""
        inputs = self.run.message.inputs
        if len(self.prints) < len(inputs) and self.worker.stage.epoch != self._epoch:
            self.give_up()
            return
        while len(self.prints) < len(inputs):
            item = inputs[len(self.prints)]
            instance = self.shuffling.instance_of(item)
            if instance is None:
                self.prints.append(self.others(len(self.prints)))
                continue
            assert isinstance(item, Input)
            assert item.value is not None
            epoch = pickle.loads(item.value)
            _Fetching(self, instance, epoch).start()
            return
        self.then(self.prints)

    def give_up(self) -> None:
        """The epoch is over, or nobody says where the shards are."""
        self.shuffling.end(RunEnded(self.run, RESCHEDULED))


class _Fetching:
    """The shards of one shuffle, for one output partition."""

    def __init__(self, joining: _Joining, barrier: Instance, epoch: int) -> None:
        self.joining = joining
        self.worker = joining.worker
        self.barrier = barrier
        self.epoch = epoch
        self.scheduler_epoch = joining.worker.machine.state.epoch
        self.ninputs = 0
        self.nasked = 0
        self.found: dict[int, Value] = {}  # by input partition
        self.missing: list[TaskId] = []
        self.unreachable: list[str] = []
        self.lacking: list[str] = []

    def start(self) -> None:
        self.joining.shuffling.locate(self.barrier.key, self.epoch, self._located)

    def _located(self, located: ShardsLocated | None) -> None:
        if located is None:
            self.joining.give_up()
            return
        self.ninputs = located.ninputs
        self.nasked = len(located.holders)
        for holder in located.holders:
            self._ask(holder)
        if not located.holders:
            self._ended()

    def _ask(self, holder: ShardHolder) -> None:
        worker = self.worker

        def arrived(found: dict[TaskId, Value] | None) -> None:
            self._arrived(holder, found)
            self.nasked -= 1
            if self.nasked == 0:
                self._ended()

        if holder.address == worker.address:
            served = {task: worker.serves(task, self.scheduler_epoch) for task in holder.transfers}
            arrived({task: value for task, value in served.items() if value is not None})
            return
        worker.stage.transfers.fetch(
            worker.address,
            self.scheduler_epoch,
            holder.address,
            holder.transfers,
            lambda found: worker.when_awake(arrived, found),
        )

    def _arrived(self, holder: ShardHolder, found: dict[TaskId, Value] | None) -> None:
        if found is None:
            self.missing += holder.transfers
            self.unreachable.append(holder.address)
            return
        rows = zip(holder.transfers, holder.input_partitions, holder.digests, strict=True)
        for task, partition, digest in rows:
            value = found.get(task)
            if value is None or digest_of(value) != digest:
                self.missing.append(task)
                if holder.address not in self.lacking:
                    self.lacking.append(holder.address)
            elif partition in self.found:
                self._fail(f"gets input partition {partition} twice")
            else:
                self.found[partition] = value

    def _ended(self) -> None:
        joining = self.joining
        run = joining.run
        if self.missing:
            deprived = RunDeprived(run, self.missing, self.unreachable, self.lacking)
            joining.shuffling.end(deprived)
            return
        if len(self.found) != self.ninputs:
            self._fail(f"gets {len(self.found)} of {self.ninputs} input partitions")
        spec = self.barrier.spec
        values = [self.found[partition] for partition in sorted(self.found)]
        prints = [value.fingerprint for value in values]
        joining.prints.append(compute(f"function-{spec.function}", spec.label, prints))
        variants = tuple([value.variant for value in values])
        rows = self.worker.stage.rows
        rows.join(self.scheduler_epoch, run.message.run, self.barrier.task, variants)
        joining.shuffling.say(
            ShardsJoined(
                run.task,
                run.message.run,
                self.barrier.key,
                joining.spec.partition,
                self.epoch,
                ROWS * self.ninputs,
                self.ninputs,
            )
        )
        joining.go_on()

    def _fail(self, sentence: str) -> None:
        self.worker.fail(
            "each input row is delivered once", f"{sentence} of {self.barrier.key!r}", Key("")
        )
