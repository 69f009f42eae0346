"""The deeds of a worker: what performs each kind of effect of its machine, in one table."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol

from shoal.ids import TaskId
from shoal.protocol.exceptions import text_of, to_failure
from shoal.protocol.orphans import ReplicasAdopted
from shoal.protocol.payload import dump_function, kind_of, load, nbytes_of
from shoal.storage.results import Results
from shoal.storage.spilled import Spilled
from shoal.worker.machine.effects import (
    Close,
    Define,
    Drop,
    Effect,
    EndRuns,
    Evict,
    Fetch,
    ForgetCodes,
    HoldRuns,
    LoadInline,
    ReadBack,
    Renumber,
    Send,
    StartRuns,
    TellAdopted,
    WithdrawRuns,
    Write,
)
from shoal.worker.machine.step import WorkerMachine
from shoal.worker.model.entities import FAILED, WITHDRAWN, Run, RunEnded
from shoal.worker.shell.errors import UnknownCode
from shoal.worker.shell.execution import Inline, Job, inline_of
from shoal.worker.shell.functions import CodeTable
from shoal.worker.shell.link import SchedulerLink
from shoal.worker.shell.replicas import Held
from shoal.worker.shell.spilling import Spilling
from shoal.worker.shell.threads import RunThreads
from shoal.worker.shell.transfers import Transfers

logger = logging.getLogger("shoal.worker")


class Events(Protocol):
    """What deeds bring about, and the machine is told of."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> object:
        """Do `work` beside everything else."""

    def now(self) -> float:
        """The loop's time."""

    def keep(self, values: Sequence[Held]) -> None:
        """Values are here that nobody was asked for."""

    def on_fetched(
        self, fetch: Fetch, held: Sequence[Held], failed: Sequence[tuple[TaskId, Any]]
    ) -> None:
        """A peer has answered."""

    def on_unreachable(self, fetch: Fetch, error: Exception) -> None:
        """There was no way to a peer."""

    def close_soon(self, reason: str) -> None:
        """The worker shall close."""


class Deeds:
    """Performs effects, on the worker's loop and in their order."""

    def __init__(
        self,
        address: str,
        machine: WorkerMachine,
        results: Results,
        *,
        events: Events,
        link: SchedulerLink,
        threads: RunThreads,
        transfers: Transfers,
        spilling: Spilling,
    ) -> None:
        self._address = address
        self._machine = machine
        self._results = results
        self._events = events
        self._link = link
        self._threads = threads
        self._transfers = transfers
        self._spilling = spilling
        self._codes = CodeTable()
        self._now = events.now

    def perform_one(self, effect: Effect) -> None:
        """Perform this effect alone."""
        DEEDS[type(effect)](self, effect)

    def perform(self) -> None:
        """Perform all effects, those that performing brings about included."""
        deeds, take_effects = DEEDS, self._machine.take_effects
        effects: list[Effect]
        while effects := take_effects():
            for effect in effects:
                deeds[type(effect)](self, effect)

    def _send(self, effect: Send) -> None:
        self._link.send(effect.messages)

    def _start_runs(self, effect: StartRuns) -> None:
        jobs: list[Job] = []
        unknown: list[RunEnded] = []
        get_code, values = self._codes.get, self._results
        for run in effect.runs:
            message = run.message
            code = get_code(message.code)
            if code is None:
                unknown.append(self._without_code(run))
                continue
            inputs: list[object] = []
            has_inline = False
            try:
                for item in message.inputs:
                    if isinstance(item, int):
                        inputs.append(values[item])
                    elif item.value is None:
                        inputs.append(values[item.task])
                    else:
                        inputs.append(Inline(item.value))
                        has_inline = True
            except Exception as error:
                if not values.is_given:
                    raise  # else it is the mapping's, which is the user's
                unknown.append(self._failed(run, error))
                continue
            jobs.append(Job(run, code, inputs, has_inline))
        self._threads.start(jobs)
        if unknown:
            self._machine.runs_ended(unknown, self._now())

    def _without_code(self, run: Run) -> RunEnded:
        return self._failed(run, UnknownCode(run.message.code))

    def _failed(self, run: Run, error: Exception) -> RunEnded:
        return RunEnded(run, FAILED, failure=to_failure(error, run.key, self._address))

    def _withdraw_runs(self, effect: WithdrawRuns) -> None:
        withdrawn = self._threads.withdraw(effect.runs)
        if withdrawn:
            ended = [RunEnded(run, WITHDRAWN) for run in withdrawn]
            self._machine.runs_ended(ended, self._now())
        if len(withdrawn) < len(effect.runs) and self._threads.on_taken_back is not None:
            self._threads.on_taken_back(effect.runs)

    def _end_runs(self, effect: EndRuns) -> None:
        self._threads.end(effect.runs)

    def _hold_runs(self, effect: HoldRuns) -> None:
        held = self._threads.withdraw(effect.runs)
        if held:
            self._machine.runs_held(held, self._now())

    def _fetch(self, effect: Fetch) -> None:
        self._events.spawn(self._fetch_from_peer(effect))

    async def _fetch_from_peer(self, fetch: Fetch) -> None:
        try:
            held, failed = await self._transfers.fetch(
                fetch.peer, fetch.tasks, self._machine.state.epoch, fetch.nbytes
            )
        except Exception as error:
            self._events.on_unreachable(fetch, error)
        else:
            self._events.on_fetched(fetch, held, failed)

    def _load_inline(self, effect: LoadInline) -> None:
        values: list[Held] = []
        for item in effect.inputs:
            assert item.value is not None
            try:
                value = load(item.value)
            except BaseException as error:  # users' code; the copy is simply not made here
                what = text_of(error)
                logger.warning("Worker %s can't read %r: %s", self._address, item.key, what)
                continue
            values.append(Held(item.task, item.key, value, nbytes_of(value)))
        self._events.keep(values)

    def _drop(self, effect: Drop) -> None:
        self._results.drop(effect.tasks)

    def _renumber(self, effect: Renumber) -> None:
        self._results.renumber(effect.pairs)
        self._results.rewatch(effect.runs)

    def _tell_adopted(self, effect: TellAdopted) -> None:
        values: list[bytes | None] = []
        kinds: list[str] = []
        for _, task, nbytes in effect.adopted:
            value, kind = self._small_or_kind(task, nbytes)
            values.append(value)
            kinds.append(kind)
        keys, tasks, sizes = (list(column) for column in zip(*effect.adopted, strict=True))
        watched = self._results.is_watched
        actors = [key for key, task, _ in effect.adopted if watched(task)]
        self._link.send([ReplicasAdopted(keys, tasks, sizes, values, kinds, actors)])

    def _small_or_kind(self, task: TaskId, nbytes: int) -> tuple[bytes | None, str]:
        """A value that is here, pickled if it is small, and else of which type it is."""
        results = self._results
        entry = None if results.is_given else results.entry(task)
        if entry is None:
            return None, ""
        value = entry[1]
        if isinstance(value, Spilled):
            return None, ""
        if results.is_watched(task):  # an actor's proxy, whatever it takes
            return dump_function(value), kind_of(value)
        small = inline_of(value, nbytes, self._threads.inline_bytes_max)
        return small, kind_of(value) if small is None else ""

    def _write(self, effect: Write) -> None:
        self._spilling.write(effect)

    def _evict(self, effect: Evict) -> None:
        self._spilling.evict(effect)

    def _read_back(self, effect: ReadBack) -> None:
        self._spilling.read_back(effect)

    def _define(self, effect: Define) -> None:
        self._codes.define(effect.message)

    def reload_codes(self) -> None:
        """Modules were imported anew."""
        self._codes.reload()

    def _forget_codes(self, effect: ForgetCodes) -> None:
        self._codes.forget(effect.codes)

    def _close_as_told(self, effect: Close) -> None:
        if not self._link.refused(effect.reason):
            self._events.close_soon(effect.reason)


DEEDS: Final[dict[type[Effect], Callable[[Any, Any], None]]] = {
    Send: Deeds._send,
    StartRuns: Deeds._start_runs,
    WithdrawRuns: Deeds._withdraw_runs,
    EndRuns: Deeds._end_runs,
    HoldRuns: Deeds._hold_runs,
    Fetch: Deeds._fetch,
    LoadInline: Deeds._load_inline,
    Drop: Deeds._drop,
    Renumber: Deeds._renumber,
    TellAdopted: Deeds._tell_adopted,
    Write: Deeds._write,
    Evict: Deeds._evict,
    ReadBack: Deeds._read_back,
    Define: Deeds._define,
    ForgetCodes: Deeds._forget_codes,
    Close: Deeds._close_as_told,
}
"""Effect → what performs it."""
