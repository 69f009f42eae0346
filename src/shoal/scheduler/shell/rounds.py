"""Rounds over the copies of results: the machine's own, and policies that programs bring.

As long as nothing is asked for but that copies which nobody needs are dropped, the machine does so
by itself.  Policies of others run here, on the scheduler's loop: they look at views and suggest;
what makes sense of it becomes one event of the machine.  Names are upstream's where programs use
them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, MutableSet
from importlib import import_module
from time import perf_counter
from typing import Any, Final, cast

from shoal import config
from shoal.observe.views import TaskView, WorkerView
from shoal.protocol import replicas
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.entities import MEMORY, Task, Worker
from shoal.scheduler.model.reduction import Suggested
from shoal.scheduler.policies.measures import MEASURES
from shoal.scheduler.policies.reduction import choose_dropper, choose_recipient, uses_of
from shoal.scheduler.shell.errors import MeasureUnknown, NoSuggestion, PolicyRaised, PolicySlow
from shoal.scheduler.shell.pacing import Pace
from shoal.units import to_seconds

logger = logging.getLogger("shoal.scheduler.rounds")

REPLICATE: Final = "replicate"
DROP: Final = "drop"

_OLD_NAMES: Final = "distributed.active_memory_manager"
_NAMED: Final = "shoal.compat.active_memory"

Pending = dict[TaskView, tuple[set[WorkerView], set[WorkerView]]]


class Policies(MutableSet[Any]):
    """Those that are asked in a round; that some were added or taken out is heard at once."""

    __slots__ = ("_held", "_when_changed")

    def __init__(self, when_changed: Callable[[], None]) -> None:
        self._held: dict[Any, Pace] = {}
        self._when_changed = when_changed

    def __repr__(self) -> str:
        return repr(set(self._held))

    def __contains__(self, policy: object) -> bool:
        return policy in self._held

    def __iter__(self) -> Iterator[Any]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)

    def add(self, policy: Any) -> None:
        """Ask it, too, from the next round on."""
        self._held.setdefault(policy, Pace())
        self._when_changed()

    def pace_of(self, policy: Any) -> Pace:
        """How long its runs take; of one that has just been taken out nobody will know."""
        return self._held.get(policy) or Pace()

    def discard(self, policy: Any) -> None:
        """Ask it no more; nothing happens if it was not asked."""
        self._held.pop(policy, None)
        self._when_changed()

    @classmethod
    def _from_iterable(cls, policies: Iterable[Any]) -> Any:
        """What `|` and its like make of them is a plain set, which nobody listens to."""
        return set(policies)


class Rounds:
    """Runs policies every so often, or when it is asked to, and has done what they suggest."""

    interval: float
    """Seconds between two rounds."""
    measure: str
    """What of workers' memory is compared."""
    clock: Callable[[], float] = staticmethod(perf_counter)
    """Seconds, to measure how long a policy keeps the loop."""

    def __init__(
        self,
        scheduler: Any,
        policies: Iterable[Any] | None = None,
        *,
        measure: str | None = None,
        register: bool = True,
        start: bool | None = None,
        interval: float | str | None = None,
    ) -> None:
        """What is None is as the settings have it.

        Args:
            scheduler: whose results these are about; it runs in this process.
            policies: each with a generator `run()` of suggestions.
            measure: of a worker's memory, to compare workers by.
            register: be the one that clients steer, instead of the one that was.
            start: begin the rounds at once.
            interval: seconds, or a text such as "2s".

        Raises:
            MeasureUnknown: there is no such measure (a ValueError).
            Exception: a policy of the settings can't be made.
        """
        settings = config.read(config.Replicas)
        self.scheduler = scheduler
        self.measure = settings.measure if measure is None else measure
        if self.measure not in MEASURES:
            raise MeasureUnknown(self.measure, list(MEASURES))
        self.interval = to_seconds(settings.interval_seconds if interval is None else interval)
        self._policies = Policies(self._adjust)
        self.pending: Pending = {}
        """In a round: task -> who shall get a copy, and who shall drop one."""
        self.workers_memory: dict[WorkerView, int] = {}
        """In a round: bytes of each, once what is pending is done."""
        self._is_on = False  # rounds come by themselves, and it is not the machine that has them
        self._timer: asyncio.TimerHandle | None = None
        self._is_registered = False
        chosen = _policies_of(settings.policies) if policies is None else policies
        for policy in chosen:
            self.add_policy(policy)
        if register:
            self._take_over()
        if settings.enabled if start is None else start:
            self.start()

    @property
    def policies(self) -> MutableSet[Any]:
        """What is asked in a round; without any, or with others, the machine has none itself."""
        return self._policies

    @policies.setter
    def policies(self, policies: Iterable[Any]) -> None:
        chosen = list(policies)
        self._policies.clear()
        for policy in chosen:
            self.add_policy(policy)

    # --- when ----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        """Whether rounds come by themselves."""
        return self._is_on or self._has_machine_on

    def start(self) -> None:
        """Have rounds from now on, the first after one interval; nothing happens if there are."""
        if not self.running:
            self._begin()

    def stop(self) -> None:
        """Have no more of them; what is under way comes to its end."""
        self.close()
        if self._has_machine_on:
            self._step(self._machine.reduce_replicas, None)

    def run_once(self) -> None:
        """Have one round now; what it decides is done soon."""
        if self._is_plain:
            self._step(self._machine.reduce_replicas_now)
            return
        self._round(list(self._policies))

    def amm_handler(self, method: str) -> bool | None:
        """Do what a client asks for by name: start, stop, run_once or running.

        Raises:
            ValueError: none of these.
        """
        match method:
            case replicas.START:
                self.start()
            case replicas.STOP:
                self.stop()
            case replicas.RUN_ONCE:
                self.run_once()
            case replicas.RUNNING:
                return self.running
            case _:
                raise ValueError(
                    f"{method!r} is none of start, stop, run_once and running, which are what can "
                    "be asked for."
                )
        return None

    def add_policy(self, policy: Any) -> None:
        """Ask it, too, from the next round on.

        Raises:
            TypeError: it has no method `run`.
        """
        if not callable(getattr(policy, "run", None)):
            raise TypeError(f"Expected a policy with a method `run`; got {policy!r}")
        setattr(policy, "manager", self)  # noqa: B010 -- what policies know us by, not a name here
        self._policies.add(policy)

    def close(self) -> None:
        """The scheduler closes: no round comes any more."""
        self._is_on = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- within ---------------------------------------------------------------------------------

    @property
    def _machine(self) -> SchedulerMachine:
        return cast(SchedulerMachine, self.scheduler.machine)

    @property
    def _has_machine_on(self) -> bool:
        """Whether the machine has rounds by itself, and it is ours to end them."""
        return self._is_registered and self._machine.state.reduction.is_on

    @property
    def _is_plain(self) -> bool:
        """Whether the machine itself does all that is asked for."""
        if not self._is_registered or self.measure != self._machine.state.settings.replica_measure:
            return False
        return bool(self.policies) and all(
            "is_of_the_machine" in type(policy).__dict__ for policy in self.policies
        )

    def _take_over(self) -> None:
        """Be the one that clients steer."""
        before = self.scheduler.__dict__.get("rounds")
        if before is not None:
            before.stop()
            before._is_registered = False
        self._is_registered = True
        self.scheduler.rounds = self
        extensions = self.scheduler.__dict__.get("extensions")
        if extensions is not None:
            extensions["amm"] = self
        if self._has_machine_on:
            self._step(self._machine.reduce_replicas, None)

    def _adjust(self) -> None:
        """Policies have come or gone: if there are rounds, whose turn they are may have changed."""
        if self._is_on if self._is_plain else self._has_machine_on:
            self.stop()
            self._begin()

    def _begin(self) -> None:
        if self._is_plain:
            self._step(self._machine.reduce_replicas, self.interval)
        else:
            self._is_on = True
            self._plan()

    def _plan(self) -> None:
        if self._timer is not None:  # a policy began rounds anew, in a round
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(self.interval, self._tick)

    def _tick(self) -> None:
        if not self.scheduler.membership.stepping.is_open:  # it has closed
            self.close()
            return
        try:
            if self._is_plain:
                self.run_once()
            else:
                self._round([p for p in list(self._policies) if self._policies.pace_of(p).is_due()])
        finally:
            if self._is_on:
                self._plan()

    def _round(self, policies: Iterable[Any]) -> None:
        """Ask these policies and have done what they suggest; one that raises is asked no more."""
        state = self._machine.state
        measure = MEASURES[self.measure]
        self.workers_memory = {WorkerView(w): measure(w) for w in state.workers.values()}
        ended: list[Any] = []
        try:
            for policy in policies:
                began_at = self.clock()
                try:
                    self._run(policy)
                except Exception as error:
                    logger.exception("%s", PolicyRaised(policy, error))
                    ended.append(policy)
                else:
                    self._note_run(policy, self.clock() - began_at)
            if self.pending:
                self._step(self._machine.enact, self._suggested())
        finally:
            self.pending = {}
            self.workers_memory = {}
            for policy in ended:
                self._policies.discard(policy)

    def _note_run(self, policy: Any, seconds: float) -> None:
        """Tell, once, of a policy that keeps everybody waiting."""
        pace = self._policies.pace_of(policy)
        if pace.note_run(seconds) and not pace.is_told:
            pace.is_told = True
            logger.warning("%s", PolicySlow(policy, seconds))

    def _step(self, event: Callable[..., None], *args: Any) -> None:
        stepping = self.scheduler.membership.stepping
        if stepping.is_open:
            stepping.step(event, *args, stepping.now())

    def _run(self, policy: Any) -> None:
        """Ask one policy until it has nothing more to say; it hears what becomes of each."""
        suggestions: Iterator[Any] = iter(policy.run())
        send = getattr(suggestions, "send", None)
        chosen: WorkerView | None = None
        try:
            while True:
                suggestion = next(suggestions) if send is None else send(chosen)
                chosen = self._weigh(*_read(suggestion))
        except StopIteration:
            return

    def _weigh(
        self, op: str, task: Task, candidates: Collection[Worker] | None
    ) -> WorkerView | None:
        """Which worker does what is suggested; None: it makes no sense, or nobody can."""
        state = self._machine.state
        if state.tasks.get(task.key) is not task or task.state != MEMORY or task.options.actor:
            return None
        view = TaskView(task)
        copies, drops = self.pending.get(view, (set(), set()))
        asked = state.workers.values() if candidates is None else candidates
        there = [worker for worker in asked if state.workers.get(worker.address) is worker]
        if op == REPLICATE:
            taken = {worker: None for worker in there if WorkerView(worker) in copies}
            coming = taken | dict(state.copies.on_way.get(task, {}))
            refused = state.copies.refusals.get(task, {})
            chosen = choose_recipient(task, there, coming, refused, self._memory_of)
        else:
            uses = uses_of(task)
            if uses is None:
                return None
            gone = {w: None for w in task.who_has or () if WorkerView(w) in drops}
            chosen = choose_dropper(task, uses, there, gone, self._memory_of)
        if chosen is None:
            return None
        found = WorkerView(chosen)
        self.pending[view] = copies, drops
        (copies if op == REPLICATE else drops).add(found)
        nbytes = max(0, task.nbytes)
        before = self.workers_memory.get(found, 0)
        self.workers_memory[found] = max(0, before + (nbytes if op == REPLICATE else -nbytes))
        return found

    def _memory_of(self, worker: Worker) -> int:
        return self.workers_memory.get(WorkerView(worker), 0)

    def _suggested(self) -> Suggested:
        """What is pending, with the entities that are meant, in the order in which it came."""
        workers = self._machine.state.workers

        def ordered(views: set[WorkerView]) -> dict[Worker, None]:
            return {worker: None for worker in workers.values() if WorkerView(worker) in views}

        return Suggested(
            {_entity(task): ordered(copies) for task, (copies, _) in self.pending.items()},
            {_entity(task): ordered(drops) for task, (_, drops) in self.pending.items()},
        )


def plain_rounds(scheduler: Any) -> Rounds:
    """Those of a scheduler whose settings ask for what the machine does by itself."""
    state = scheduler.machine.state
    rounds = Rounds(
        scheduler,
        [import_module(_NAMED).ReduceReplicas()],
        measure=state.settings.replica_measure,
        interval=state.reduction.interval_seconds,
        register=False,  # it takes nothing over: what the machine does goes on
        start=False,
    )
    rounds._is_registered = True
    return rounds


def _entity(view: Any) -> Any:
    """What a view shows."""
    return view._entity


def _read(suggestion: Any) -> tuple[str, Task, list[Worker] | None]:
    """What is suggested, of entities.

    Raises:
        NoSuggestion: it is none.
    """
    match suggestion:
        case (str(op), TaskView() as task, *rest) if op in (REPLICATE, DROP) and len(rest) < 2:
            candidates = rest[0] if rest else None
        case _:
            raise NoSuggestion(suggestion)
    if candidates is None:
        return op, _entity(task), None
    return op, _entity(task), [_entity(w) for w in candidates if isinstance(w, WorkerView)]


def _policies_of(rows: Iterable[dict[str, Any]]) -> list[Any]:
    """The policies that settings name, each called with the rest of its row."""
    found = []
    for row in rows:
        arguments = dict(row)
        module, _, name = str(arguments.pop("class")).rpartition(".")
        if module == _OLD_NAMES:
            module = _NAMED  # the same, whether or not the drop-in is installed
        found.append(getattr(import_module(module), name)(**arguments))
    return found
