"""What the scheduler says, as short lines of text, one for each thing said."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from shoal.ids import ClientTaskId, RunId, TaskId
from shoal.protocol.actors import ActorsLost
from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.coordination import Published
from shoal.protocol.detached import JournalStopped
from shoal.protocol.directions import ANSWERS
from shoal.protocol.holding import TaskRetried
from shoal.protocol.keys import to_text
from shoal.protocol.limits import PlacesHeld, TasksStranded
from shoal.protocol.logs import ForwardLogsOf
from shoal.protocol.looking import MemberJoined, MemberLeft, Members
from shoal.protocol.membership import LeavingChanged
from shoal.protocol.memory import AllPaused
from shoal.protocol.messages import (
    AcquireReplicas,
    AskHearing,
    DefineCode,
    ForgetCode,
    FreeReplicas,
    Input,
    Message,
    RecallRuns,
    RunTask,
    Shutdown,
    TaskCancelled,
    TaskErred,
    TaskInMemory,
    TaskLost,
)
from shoal.protocol.orphans import AdoptReplicas, FreeOrphans
from shoal.protocol.plain import load_plain
from shoal.protocol.shuffles import LocateShards
from shoal.protocol.slots import RunTaskIn
from shoal.protocol.topics import TopicEvent
from shoal.protocol.transfers import PlaceScatter


def place(address: str) -> str:
    """`"tcp://a:1"` is a."""
    return address.removeprefix("tcp://").removesuffix(":1")


def places(addresses: list[str]) -> str:
    """Several of them, in their order."""
    return ",".join(place(address) for address in addresses)


class Names:
    """What the numbers in messages stand for."""

    def __init__(self) -> None:
        self.keys: dict[TaskId, str] = {}
        self.nth_run: dict[RunId, int] = {}  # of its task
        self.nruns: dict[TaskId, int] = {}
        self.limited: set[RunId] = set()  # runs that have a timeout
        self.calls: dict[int, type[Message]] = {}

    def run(self, task: TaskId, run: RunId) -> str:
        """`"x #2"`: the second run of x."""
        if run not in self.nth_run:
            self.nruns[task] = self.nruns.get(task, 0) + 1
            self.nth_run[run] = self.nruns[task]
        return f"{self.keys[task]} #{self.nth_run[run]}"

    def to_worker(self, message: Message, *, codes: bool) -> Iterator[str]:
        """Lines about one message to a worker; about codes only if asked."""
        match message:
            case RunTask():
                self.keys[message.task] = to_text(message.key)
                inputs = [self.input(item) for item in message.inputs if isinstance(item, Input)]
                arrive = f" ({', '.join(inputs)})" if inputs else ""
                if isinstance(message, RunTaskIn):
                    arrive += f" by {message.executor}" if message.executor else ""
                    if limit := message.timeout_seconds:
                        arrive += f" within {limit:g} s"
                        self.limited.add(message.run)
                yield f"run {self.run(message.task, message.run)}{arrive}"
            case RecallRuns():
                ends = message.unwanted and all(run in self.limited for _, run in message.runs)
                verb = "recall or end " if ends else "recall "
                yield verb + ", ".join(self.run(task, run) for task, run in message.runs)
            case FreeReplicas():
                yield "free " + ", ".join(self.keys[task] for task in message.tasks)
            case AcquireReplicas():
                yield "copy " + ", ".join(self.input(item) for item in message.inputs)
            case AdoptReplicas():
                yield "adopt " + ", ".join(
                    f"{key} as {self.keys[task]}" if self.keys[task] != key else key
                    for key, task in zip(message.keys, message.tasks, strict=True)
                )
            case FreeOrphans():
                yield "let go of " + ", ".join(message.keys)
            case DefineCode() if codes:
                yield f"code {message.payload.decode()}"
            case ForgetCode() if codes:
                yield "forget code " + ", ".join(str(code) for code in message.codes)
            case DefineCode() | ForgetCode():
                return
            case ForwardLogsOf():
                yield f"forward {message.logger} from {message.level} as {message.topic}"
            case Shutdown():
                yield f"shut down: {message.reason}"
            case AskHearing():
                yield "ask what it hears"
            case LeavingChanged():
                yield "it is given nothing more" if message.is_leaving else "it is given work again"
            case ActorsLost():
                yield f"actors on {place(message.address)} are lost: {message.why}"
            case Answer():
                yield f"answer {self.answer(message)}"
            case Refusal():
                self.calls.pop(message.request)
                yield f"refused {message.failure.text.splitlines()[0]}"
            case _:
                raise AssertionError(f"the scene has no words for {message}")

    def input(self, item: Input) -> str:
        """How an input that isn't there already gets there."""
        if item.value is not None:
            return f"{to_text(item.key)} inline"
        return f"{to_text(item.key)} from {places(item.holders)}"

    def to_client(self, message: Message, key_of: Callable[[ClientTaskId], str]) -> str:
        """The line about one message to a client."""
        match message:
            case TaskInMemory():
                where = "inline" if message.value is not None else f"at {places(message.holders)}"
                return f"{key_of(message.task)} in memory {where}"
            case TaskErred():
                origin = to_text(message.failure.origin)
                of = "" if origin in ("", key_of(message.task)) else f" (of {origin})"
                return f"{key_of(message.task)} erred: {message.failure.text.splitlines()[0]}{of}"
            case TaskLost():
                return f"{key_of(message.task)} lost"
            case TaskRetried():
                return f"{key_of(message.task)} is tried again"
            case TaskCancelled():
                return f"{key_of(message.task)} cancelled: {message.reason}"
            case Members():
                names = ", ".join(worker.name for worker in message.workers)
                return f"workers: {names}"
            case MemberJoined():
                return f"joined: {message.worker.name}"
            case MemberLeft():
                return f"left: {place(message.address)}"
            case TopicEvent():
                return f"{message.topic}: {load_plain(message.value)}"
            case Answer():
                return f"answer {self.answer(message)}"
            case Refusal():
                self.calls.pop(message.request)
                return f"refused {message.failure.text.splitlines()[0]}"
            case ActorsLost():
                return f"actors on {place(message.address)} are lost: {message.why}"
            case JournalStopped():
                return f"the journal has stopped: {message.why}"
            case Published():
                return f"published {message.value} for {message.claim}"
            case PlacesHeld():
                names = ", ".join(message.names)
                return f"{message.key} needs {names} of {message.holder}, {message.nholders} in all"
            case TasksStranded():
                needs = {**message.resources, **dict.fromkeys(message.workers, 1)}
                there = f"{message.nworkers} workers"
                return f"{message.key} and {message.ntasks - 1} stranded: {needs}, {there}"
            case AllPaused():
                who = f"all {message.nworkers} paused for {message.seconds:g} s"
                return f"{who}, {message.worker}: {message.why}"
        raise AssertionError(f"the scene has no words for {message}")

    def answer(self, message: Answer) -> str:
        """What a call was answered, addresses shortened."""
        kind = self.calls.pop(message.request)
        value: Any = msgspec.msgpack.decode(message.value, type=ANSWERS[kind])
        if kind is LocateShards:
            where = (
                f"{place(holder.address)} has "
                + ", ".join(
                    f"{key} ({n})"
                    for key, n in zip(holder.keys, holder.input_partitions, strict=True)
                )
                for holder in value.holders
            )
            return f"{value.rows} rows of {value.ninputs}: {'; '.join(where)}"
        if kind is PlaceScatter:
            value = {self.keys.get(item.task, "let go"): item.workers for item in value}
        return str(value).replace("tcp://", "").replace(":1'", "'")
