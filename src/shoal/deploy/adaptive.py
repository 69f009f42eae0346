"""A cluster whose number of workers follows its load."""

from __future__ import annotations

import asyncio
import inspect
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final

from shoal import config
from shoal.deploy.adaptive_core import AdaptiveCore, Recommendation, logger
from shoal.deploy.asking import SchedulerByName
from shoal.deploy.deciding import Decision
from shoal.deploy.periodic import Periodic
from shoal.observe.errors import ViewWouldBlock
from shoal.observe.status import Status
from shoal.protocol.membership import RetireWorkers
from shoal.protocol.payload import dump_function
from shoal.protocol.questions import Identity, SchedulerIdentity
from shoal.protocol.scaling import Deserved, WorkersDeserved
from shoal.units import to_count, to_seconds

PATIENCE_SECONDS: Final = 30.0
"""How long a worker that is to go is kept without any progress, until it stays after all."""

REPAIRED_AFTER: Final = 2
"""Looks in a row in which a worker that is wanted is not even asked for, until it is anew."""

REPAIR_SECONDS_MAX: Final = 60.0
"""Between two attempts to start what does not come."""

DECISIONS_MAX: Final = 100


class Adaptive(AdaptiveCore):
    """Looks at a cluster's load from time to time, and scales the cluster.

    What drives it is what the scheduler answers to `adaptive_target`: the work at hand by what such
    tasks have taken before, and memory.  A worker is let go when it has nothing to do and nobody
    needs more than what others hold; what only it holds is copied to others first, and where that
    can't be done it stays.  See `adaptive` in the configuration for what is not given.

    Args:
        cluster: whose `scale`, `scale_down`, `plan`, `requested` and `observed` are used.
        interval: between two looks; 0: none, but by `adapt()`.
        minimum, maximum: of workers.
        wait_count: a worker that could go does so after so many looks in a row.
        target_duration: what the work at hand may take; less means more workers.
        worker_key: a function of a worker (it has `name`, `host`, `address`, ...): those for which
            it is equal go together.
        spare: workers beyond what the load deserves, for what may come.
        kwargs: for the scheduler's `workers_to_close`, such as `memory_ratio`.

    Raises:
        ValueError: a bound or a duration makes no sense.
    """

    def __init__(
        self,
        cluster: Any,
        interval: float | str | None = None,
        minimum: int | None = None,
        maximum: float | None = None,
        wait_count: int | None = None,
        target_duration: float | str | None = None,
        worker_key: Callable[[Any], Any] | None = None,
        *,
        spare: int = 0,
        **kwargs: Any,
    ) -> None:
        settings = config.read(config.Adaptive)
        super().__init__(
            settings.minimum if minimum is None else minimum,
            settings.maximum if maximum is None else maximum,
            settings.wait_count if wait_count is None else wait_count,
        )
        self.cluster = cluster
        self.interval = settings.interval_seconds if interval is None else to_seconds(interval)
        self.target_duration = (
            settings.target_seconds if target_duration is None else to_seconds(target_duration)
        )
        self.worker_key = worker_key
        self.spare = to_count("spare", spare)
        self.decisions: deque[Decision] = deque(maxlen=DECISIONS_MAX)
        """What was changed and why, the latest last."""
        self.decision: Decision | None = None
        """Of the latest look."""
        self._workers_to_close_kwargs = kwargs
        self._found: Deserved | None = None  # in this look, if the scheduler was asked
        self._names_there: list[str] = []  # as the scheduler has them
        self._attempt: asyncio.Future[Any] | None = None  # to start workers, the latest
        self._nlooks_lacking = 0
        self._repair_at = 0.0
        self._repair_seconds = self.interval
        self.state = "starting"
        """`starting`, `running`, `stopped`, or `inactive`: it looks when it is told to."""
        self.periodic_callback: Periodic | None = None
        if self.interval <= 0:
            self.state = "inactive"
            return
        loop = self.loop
        self.periodic_callback = Periodic(self.interval, self.look, loop)
        loop.call_soon_threadsafe(self._start)

    def __repr__(self) -> str:
        now = "" if self.decision is None else f": {self.decision}"
        failure = "" if self.failure is None else f", the latest look failed: {self.failure!r}"
        bounds = f"minimum={self.minimum}, maximum={self.maximum}"
        return f"<{type(self).__name__} {bounds}, {self.state}{now}{failure}>"

    # --- life ----------------------------------------------------------------------------------

    def _start(self) -> None:
        if self.state == "starting" and self.periodic_callback is not None:
            self.state = "running"
            self.periodic_callback.start()
            logger.info("Adaptive scaling started: %r", self)

    def stop(self, reason: str = "unknown") -> None:
        """Look no more; from any thread.  What the cluster has it keeps.

        Args:
            reason: for the log.
        """
        if self.state in ("starting", "running"):
            self.state = "stopped"
            logger.info("Adaptive scaling stopped: minimum=%d, maximum=%s. Reason: %s",
                        self.minimum, self.maximum, reason)  # fmt: skip
        periodic, self.periodic_callback = self.periodic_callback, None
        if periodic is not None:
            periodic.stop()

    # --- the cluster ---------------------------------------------------------------------------

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The cluster's."""
        loop = getattr(self.cluster, "loop", None)
        found: asyncio.AbstractEventLoop | None = getattr(loop, "asyncio_loop", loop)
        return asyncio.get_running_loop() if found is None else found

    @property
    def scheduler(self) -> Any:
        """The scheduler's operations by name, to be awaited: `scheduler.adaptive_target()`."""
        return SchedulerByName(self.cluster)

    @property
    def plan(self) -> set[Any]:
        """Names of the workers that the cluster wants."""
        return self._names("plan")

    @property
    def requested(self) -> set[Any]:
        """Names of those that it has asked for."""
        return self._names("requested")

    @property
    def observed(self) -> set[Any]:
        """Names of those that are there."""
        return self._names("observed")

    def _names(self, which: str) -> set[Any]:
        try:
            return set(getattr(self.cluster, which))
        except ViewWouldBlock:  # it would have to ask the scheduler, which we have done
            known = set() if which != "observed" else self.plan | self.requested
            by_text = {str(name): name for name in known}
            return {by_text.get(name, name) for name in self._names_there}

    # --- a look --------------------------------------------------------------------------------

    async def target(self) -> int:
        """How many workers the load deserves, and `spare` ones."""
        found = await self._ask_load()
        return max(found.nworkers + self.spare, found.nkept)

    async def _ask_load(self) -> Deserved:
        size = self.cluster._size_of_new
        said = str(self.decision or "it is about to look at the load")
        found: Deserved = await self.cluster._ask(
            lambda request: WorkersDeserved(
                request,
                self.target_duration,
                int(size("nthreads")),
                int(size("memory_limit")),
                said,
            )
        )
        self._found = found
        self._names_there = found.names
        return found

    async def workers_to_close(self, target: int) -> list[Any]:
        """Names of workers that could go if `target` are left, the emptiest of them first."""
        arguments = dict(self._workers_to_close_kwargs)
        key = self.worker_key or self.cluster._key_of_groups
        if key is not None:
            arguments["key"] = dump_function(key)
        names = await self.scheduler.workers_to_close(target=target, attribute="name", **arguments)
        ours = {str(name): name for name in self.plan | self.requested}
        return [ours[str(name)] for name in names if str(name) in ours]

    def _not_there(self, plan: set[Any], nmax: int) -> list[Any]:
        """As ever, but what one job starts goes as a whole."""
        chosen: list[Any] = []
        for group in self.cluster._whole_groups(super()._not_there(plan, len(plan))):
            if len(chosen) + len(group) <= nmax:
                chosen += group
        return chosen

    async def scale_up(self, n: int) -> None:
        """Have the cluster start workers until there are `n`."""
        work = self.cluster._scale_to(n)
        if isinstance(work, asyncio.Future):
            self._attempt = work
        await _done(work)

    async def scale_down(self, workers: Iterable[Any]) -> None:
        """Let these go, as soon as others hold what only they held; those that can't be relieved of
        that stay."""
        names = [str(worker) for worker in workers]
        there = [name for name in names if name in set(map(str, self.observed))]
        staying: set[str] = set()
        if there:
            verdicts: dict[str, str] = await self.cluster._ask(
                lambda n: RetireWorkers(n, there, patience_seconds=PATIENCE_SECONDS)
            )
            staying = await self._names_of([w for w, why in verdicts.items() if why])
        await _done(self.cluster.scale_down([name for name in names if name not in staying]))

    async def _look(self) -> None:
        if self.cluster.status is not Status.running:
            self.stop(f"the cluster is {self.cluster.status}")
            return
        self._found = None
        await super()._look()

    def _tell_of(self, error: Exception) -> None:
        if self.cluster.status is Status.running:
            super()._tell_of(error)
        else:  # it has closed meanwhile
            self.stop(f"the cluster is {self.cluster.status}")

    async def _follow(self, target: int, recommendation: Recommendation) -> None:
        decision = self.decision = self._decision(target, recommendation)
        if decision.status != "same":
            self.decisions.append(decision)
            self.cluster._tell_of_scaling(decision)
        await super()._follow(target, recommendation)
        if decision.status == "same":
            await self._repair()

    def _decision(self, target: int, recommendation: Recommendation) -> Decision:
        failure = self._why_none_came()
        return Decision(
            time.time(),
            target,
            len(self.plan),
            len(self.observed),
            recommendation,
            self.minimum,
            self.maximum,
            self.spare,
            self._found,
            self.target_duration,
            self.ripening.seconds_left(time.monotonic()),
            "" if failure is None else str(failure).partition("\n")[0],
        )

    def _why_none_came(self) -> BaseException | None:
        """What kept workers from being started the last time; None: nothing, as far as is known."""
        failure: BaseException | None = getattr(self.cluster, "failure", None)
        attempt = self._attempt
        if failure is None and attempt is not None and attempt.done() and not attempt.cancelled():
            return attempt.exception()
        return failure

    async def _names_of(self, addresses: list[str]) -> set[str]:
        """Of those of these workers that are still there."""
        if not addresses:
            return set()
        found: Identity = await self.cluster._ask(SchedulerIdentity)
        return {worker.name for worker in found.workers if worker.address in addresses}

    async def _repair(self) -> None:
        """Have the cluster try again to start what it wants and has not even asked for.

        As it may be about to do that by itself, or can't, it is given time: more and more of it.
        """
        if self.plan <= self.requested or self.cluster._is_scaling:
            self._nlooks_lacking = 0
            if self.plan <= self.observed:
                self._repair_seconds = self.interval
            return
        self._nlooks_lacking += 1
        now = time.monotonic()
        if self._nlooks_lacking >= REPAIRED_AFTER and now >= self._repair_at:
            self._repair_at = now + self._repair_seconds
            self._repair_seconds = min(2 * self._repair_seconds, REPAIR_SECONDS_MAX)
            await self.scale_up(len(self.plan))


async def _done(work: Any) -> None:
    """Wait for what has to be awaited in order to happen; what happens by itself is not awaited."""
    if inspect.isawaitable(work) and not isinstance(work, asyncio.Future):
        await work
