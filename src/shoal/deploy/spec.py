"""`SpecCluster`: a cluster of whatever its spec names, which libraries derive theirs from."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import inspect
import logging
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

from shoal import config
from shoal.deploy.adapting import AdaptingBySize
from shoal.deploy.cluster import (
    CLOSE_SECONDS,
    Cluster,
    _open_clusters,
    close_open_clusters,
)
from shoal.deploy.faces import CORRECTION, close_from_anywhere
from shoal.deploy.job import ProcessInterface
from shoal.deploy.losses import LostWorkers
from shoal.deploy.options import check_security
from shoal.errors import ShoalError
from shoal.nanny.keeper import WorkerKeeper
from shoal.observe.asked import class_named
from shoal.observe.facts import FactsOfScheduler, facts_of_identity
from shoal.observe.status import Status
from shoal.protocol import membership
from shoal.units import to_count, to_nbytes

__all__ = ["ProcessInterface", "SpecCluster", "close_open_clusters", "run_spec"]

_SCHEDULER: Final = {"cls": "shoal.scheduler.shell.service.Scheduler", "options": {}}
_logger = logging.getLogger("shoal.deploy")

_OURS: Final = "shoal."
_OF_ENTRY: Final = {"nthreads": "cores", "memory_limit": "memory"}
_ENDED: Final = (Status.closed, Status.failed)
_OF_OLD: Final = ("security", "interface", "dashboard")
"""Options of schedulers that say nothing if they are empty, and that ours does not take."""


class SpecCluster(AdaptingBySize, Cluster):
    """A scheduler and workers that are made by what `spec` says of each.

    Args:
        workers: name → `{"cls": class or its dotted name, "options": {...}}`; with `"group"`, a
            list of endings, it is one thing that starts several workers, named by its name and
            those.  `cls(scheduler's address, name=..., **options)` is awaited, and has `close()`.
        scheduler: the same for the scheduler, made by `cls(**options)`.
        worker: the same for workers that are added by `scale`.
        asynchronous: True: await it, or use `async with`, and await its methods.
        shutdown_on_close: close it as the program ends.
        shutdown_scheduler: False: `close` leaves the scheduler alone.

    Raises:
        RuntimeError: it did not start; what was started is closed again.
    """

    kind: ClassVar[str] = "SpecCluster"

    _instances: ClassVar = _open_clusters
    """As programs that look for clusters left open know them."""

    def __init__(
        self,
        workers: Mapping[Any, Mapping[str, Any]] | None = None,
        scheduler: Mapping[str, Any] | None = None,
        worker: Mapping[str, Any] | None = None,
        asynchronous: bool = False,
        loop: Any = None,
        security: Any = None,
        silence_logs: Any = False,
        name: str | None = None,
        shutdown_on_close: bool = True,
        scheduler_sync_interval: float = 1,
        shutdown_scheduler: bool = True,
    ) -> None:
        self.status = Status.created  # before anything can fail
        check_security(security, None)
        super().__init__(asynchronous=asynchronous, name=name)
        self.worker_spec: dict[Any, Any] = {k: copy.copy(v) for k, v in (workers or {}).items()}
        self.new_spec = copy.copy(worker)
        self.scheduler_spec = copy.copy(scheduler) if scheduler is not None else _SCHEDULER
        self.security = security
        self.shutdown_on_close = shutdown_on_close
        self.shutdown_scheduler = shutdown_scheduler
        self._i = 0
        self._entry_by_member: dict[str, Any] = {}
        """Name of a worker → name of the entry in `workers` that has started it."""
        self._specs: dict[Any, Mapping[str, Any]] = {}
        """What the entries in `workers` were made from, whatever the spec says by now."""
        self._correcting = asyncio.Lock()
        self._losses = LostWorkers(
            config.read(config.Deploying).lost_worker_seconds, self._has_not_come_back
        )
        self._begin()
        if not shutdown_on_close:
            _open_clusters.discard(self)

    # --- life --------------------------------------------------------------------------------

    async def _start(self) -> None:
        try:
            self.scheduler = made(self.scheduler_spec)
            await self.scheduler
        except Exception as error:
            raise RuntimeError(f"Cluster failed to start: {error}") from error
        self.token = getattr(self.scheduler, "token", b"")
        if hasattr(self.scheduler, "add_plugin"):  # else nobody tells us
            self.scheduler.add_plugin(self._losses, name=f"losses of {self.name}")
        await self._correct()

    async def _close(self, timeout_seconds: float) -> None:
        until = asyncio.get_running_loop().time() + timeout_seconds
        prepare = getattr(self.scheduler, "prepare_to_close", None)  # others' have none
        if prepare is not None and self.shutdown_scheduler:
            with contextlib.suppress(TimeoutError):  # then they have had their time
                await asyncio.wait_for(prepare(), timeout_seconds / 3)  # they may ask workers
        going, self.workers = self.workers, {}
        outcomes = await asyncio.gather(  # the scheduler has to close, whatever they do
            *(_closed(worker, timeout_seconds / 2) for worker in going.values()),
            return_exceptions=True,
        )
        for name, outcome in zip(going, outcomes, strict=True):
            self._tell_unless_closed(f"worker {name}", outcome)
        if self.scheduler is None:
            return
        if self.shutdown_scheduler:
            left_seconds = until - asyncio.get_running_loop().time()
            try:
                await _closed(self.scheduler, max(left_seconds, timeout_seconds / 6))
            except TimeoutError as error:
                self._tell_unless_closed("the scheduler", error)
        elif self._losses in getattr(self.scheduler, "plugins", {}).values():
            self.scheduler.remove_plugin(f"losses of {self.name}")

    def _tell_unless_closed(self, what: str, error: BaseException | None) -> None:
        """Say what did not close as the cluster does; it is not tried again."""
        if error is not None:
            why = "it took too long" if isinstance(error, TimeoutError) else repr(error)
            _logger.warning("The cluster %s closes, and %s did not: %s", self.name, what, why)

    def _close_now(self, deadline: float) -> None:
        close_from_anywhere(self._loop, self._close, deadline)

    async def _correct_state(self) -> None:
        """As libraries that change `worker_spec` by themselves call it."""
        await self._correct()

    async def _scaled(self) -> None:
        """Those that have been lost meanwhile are replaced as well."""
        await super()._scaled()
        await self._correct()

    def _has_not_come_back(self, member: str) -> None:
        """The scheduler has lost a worker for good: its entry is closed, and may be made anew.

        A nanny that still runs starts its worker again by itself.
        """
        if self.status is not Status.running:
            return
        if member in self._entry_by_member:
            name = self._entry_by_member[member]
            worker = self.workers.get(name)
            if not isinstance(worker, WorkerKeeper) or worker.status in _ENDED:
                self._in_background(self._let_go(name), CORRECTION)

    async def _let_go(self, name: Any) -> None:
        async with self._correcting:
            are_there = map(self._losses.is_there, map(str, self._members(name)))
            if name in self.workers and not any(are_there):
                try:
                    await self._end_entry(name)
                finally:  # what has gone already may well be unable to close
                    self._forget_entry(name)

    async def _correct(self) -> None:
        """Bring the workers in line with the spec; a later call waits for an earlier one."""
        async with self._correcting:
            if self._is_ending:
                return
            going = [name for name in list(self.workers) if name not in self.worker_spec]
            if going and self.status is Status.running:
                await self._send_away(going)
            outcomes = await asyncio.gather(*map(self._end_entry, going), return_exceptions=True)
            # A copy, as users scale in threads of theirs.
            specs = list(self.worker_spec.items())
            coming = [(name, spec) for name, spec in specs if name not in self.workers]
            outcomes += await asyncio.gather(
                *(self._start_entry(name, spec) for name, spec in coming), return_exceptions=True
            )
        for outcome in outcomes:
            if outcome is not None:
                raise outcome

    async def _send_away(self, going: list[Any]) -> None:
        """Have the workers of these entries go, once others hold what only they held."""
        for name in going:
            if isinstance(self.workers[name], WorkerKeeper):
                self.workers[name].close_gracefully("it is retired")
        addresses = self._addresses({str(one) for name in going for one in self._members(name)})
        if addresses:
            await self._retire(addresses)
            with contextlib.suppress(ShoalError, OSError):  # what runs them ends them anyway
                await self._ask(lambda n: membership.CloseWorkers(n, addresses))

    async def _end_entry(self, name: Any) -> None:
        """Close a worker; one that can't be closed is tried again by the next correction."""
        await _closed(self.workers[name], CLOSE_SECONDS)
        self._forget_entry(name)

    def _forget_entry(self, name: Any) -> None:
        for member in self._members(name):
            self._entry_by_member.pop(str(member), None)
        self.workers.pop(name, None)
        self._specs.pop(name, None)

    async def _start_entry(self, name: Any, spec: Mapping[str, Any]) -> None:
        """Start a worker; of one that fails nothing stays, so the next correction makes another."""
        if self._is_ending:
            return
        address = getattr(self.scheduler, "contact_address", None) or self.scheduler_address
        worker = self.workers[name] = made(spec, address, name=name, token=self.token)
        self._specs[name] = spec
        self._entry_by_member.update({str(member): name for member in self._members(name)})
        try:
            await worker
        except Exception:
            with contextlib.suppress(Exception):
                await _closed(worker, CLOSE_SECONDS)
            self._forget_entry(name)
            raise

    def _addresses(self, names: set[str]) -> list[str]:
        """Of the workers that the scheduler knows by these names; these, if it is not in here."""
        known = getattr(self.scheduler, "workers", None)
        if known is None:
            return sorted(names)
        return [address for address, worker in known.items() if str(worker.name) in names]

    def _members(self, name: Any) -> Iterator[Any]:
        """The names of the workers of one entry."""
        spec = self._specs.get(name) or self.worker_spec.get(name) or {}
        endings = spec.get("group", ())
        yield from (f"{name}{ending}" for ending in endings) if endings else (name,)

    # --- size --------------------------------------------------------------------------------

    def scale(self, n: int = 0, memory: float | str | None = None, cores: int | None = None) -> Any:
        """Have `n` entries of workers, or as many as give that much memory or that many cores.

        Those that were added last go first, and before them those that have not started.

        Returns:
            None, or something to await if the cluster is asynchronous.

        Raises:
            ValueError: memory or cores are given, and the spec does not say how much a worker has.
        """
        self._require_running()
        wanted = max(
            to_count("n", n),
            math.ceil(to_nbytes(memory) / self._of_entry("memory_limit")) if memory else 0,
            math.ceil(cores / self._of_entry("nthreads")) if cores else 0,
        )
        spare = len(self.worker_spec) - wanted
        if spare > 0:
            waiting = [name for name in list(self.worker_spec) if name not in self.workers]
            going = list(dict.fromkeys([*waiting, *reversed(self.worker_spec)]))
            for name in going[:spare]:
                self.worker_spec.pop(name, None)
        while len(self.worker_spec) < wanted:
            self.worker_spec.update(self.new_worker_spec())
        return self._corrected()

    scale_up = scale

    async def scale_down(self, workers: Iterable[Any]) -> None:
        """Let these workers go, by name; one of a group takes the group along."""
        going = {str(worker) for worker in workers}
        for name in list(self.worker_spec):
            if going & {str(name), *map(str, self._members(name))}:
                del self.worker_spec[name]
        await self._correct()

    def _corrected(self) -> Any:
        if self.asynchronous:
            return self._in_background(self._correct(), CORRECTION)
        if self._thread is not None:
            self._thread.call(lambda: self._in_background(self._correct(), CORRECTION))
        return None

    def _size_of_new(self, option: str) -> float:
        options = (self.new_spec or {}).get("options", {})
        options = {**options.get("worker_kwargs", {}), **options}
        found, nworkers = options.get(option), 1
        if not found:  # an entry may say what all of its workers have
            found, nworkers = options.get(_OF_ENTRY[option]), self._neach
        if not found or found == "auto":
            return 0.0
        return float(to_nbytes(found) if option == "memory_limit" else found) / nworkers

    def _of_entry(self, option: str) -> float:
        """How much of something a new entry has.  Raises ValueError: that is not known."""
        return self._each(option) * self._neach

    @property
    def _neach(self) -> int:
        """How many workers a new entry starts."""
        return len((self.new_spec or {}).get("group", ())) or 1

    def _scale_to(self, nworkers: int) -> Any:
        """A class with a `scale` of its own counts workers there; here they come in entries."""
        if type(self).scale is not SpecCluster.scale:
            return self.scale(nworkers)
        nmore = math.ceil((nworkers - len(self.plan)) / self._neach)
        return self.scale(len(self.worker_spec) + max(0, nmore))

    def _whole_groups(self, names: Sequence[Any]) -> list[list[Any]]:
        texts = dict.fromkeys(map(str, names))
        groups: dict[Any, list[Any]] = {}
        for entry in list(self.worker_spec):
            members = list(self._members(entry))
            if all(str(member) in texts for member in members):
                groups.update(dict.fromkeys(map(str, members), members))
        found = [groups[text] for text in texts if text in groups]
        return list({id(members): members for members in found}.values())

    @property
    def _key_of_groups(self) -> Callable[[Any], Any] | None:
        if not any("group" in spec for spec in list(self.worker_spec.values())):
            return None
        entry_by_member = {
            str(member): str(name)
            for name in list(self.worker_spec)
            for member in self._members(name)
        }
        return partial(entry_of, entry_by_member)

    @property
    def _name(self) -> str:
        """As derived classes know `name`, from which they make names of workers."""
        return self.name

    def _new_worker_name(self, worker_number: int) -> Any:
        """The name of the next entry; derived classes have ways of their own."""
        return worker_number

    def new_worker_spec(self) -> dict[Any, Mapping[str, Any]]:
        """Name and spec of the next entry that `scale` adds.

        Raises:
            ValueError: there is no `worker=` to make it from.
        """
        if self.new_spec is None:
            raise ValueError("This cluster has no spec for new workers: give it worker=.")
        name = self._new_worker_name(self._i)
        while name in self.worker_spec:
            self._i += 1
            name = self._new_worker_name(self._i)
        self._i += 1
        return {name: self.new_spec}

    # --- looks -------------------------------------------------------------------------------

    @property
    def scheduler_info(self) -> FactsOfScheduler:
        """What the scheduler and its workers are; asked, unless the scheduler is in here."""
        if hasattr(self.scheduler, "describe"):
            return facts_of_identity(self.scheduler.describe())
        self._require_running()
        return super().scheduler_info

    @property
    def _there(self) -> list[Any]:
        known = getattr(self.scheduler, "workers", None)
        return super()._there if known is None else list(known.values())

    @property
    def plan(self) -> set[Any]:
        """Names of the workers that we want."""
        return {member for name in list(self.worker_spec) for member in self._members(name)}

    @property
    def requested(self) -> set[Any]:
        """Names of the workers that have been asked for."""
        return {member for name in list(self.workers) for member in self._members(name)}

    @property
    def observed(self) -> set[Any]:
        """Names of the workers that are connected."""
        if not hasattr(self.scheduler, "workers"):
            return super().observed
        known = self.scheduler.workers.values()
        by_text = {str(name): name for name in self.plan | self.requested}
        return {by_text.get(str(worker.name), worker.name) for worker in known}

    @classmethod
    def from_name(cls, name: str) -> SpecCluster:
        """The cluster of a name, where a library's own class can find it.

        Raises:
            TypeError: this one can't.
        """
        raise TypeError(f"A {cls.__name__} can't be found by its name {name!r}.")


def entry_of(entry_by_member: Mapping[str, str], worker: Any) -> str:
    """What has started a worker; one that is no member of anything stands for itself."""
    return entry_by_member.get(str(worker.name), worker.address)


def made(spec: Mapping[str, Any], *args: Any, name: Any = None, token: bytes | None = None) -> Any:
    """What one entry of a spec says, not started.

    Args:
        name: unless the entry has one.
        token: given to classes that take one.
    """
    cls = class_of(spec["cls"])
    options = dict(spec.get("options", {}))
    if args:
        options.setdefault("name", name)
    taken = parameters_of(cls)
    if token and "token" in taken:
        options.setdefault("token", token)
    for option in _OF_OLD:
        if option in options and not options[option] and option not in taken:
            del options[option]
    if getattr(cls, "__module__", "").startswith(_OURS):  # then None is what was not said
        options = {name: value for name, value in options.items() if value is not None}
    if isinstance(options.get("protocol"), str):
        options["protocol"] = options["protocol"].removesuffix("://")
    return cls(*args, **options)


def class_of(kind: Any) -> Any:
    """The class that a spec names, by itself or by where it is found.  Raises UnknownClass."""
    if not isinstance(kind, str):
        return kind
    return class_named(kind)


def parameters_of(cls: Any) -> set[str]:
    """Names of what a class takes; none of one that does not tell."""
    try:
        return set(inspect.signature(cls).parameters)
    except (TypeError, ValueError):
        return set()


async def _awaited(worker: Any) -> None:
    await worker


async def _closed(worker: Any, timeout_seconds: float) -> None:
    """Raises TimeoutError: it takes too long."""
    async with asyncio.timeout(timeout_seconds):
        await worker.close()


async def run_spec(spec: Mapping[Any, Mapping[str, Any]], *args: Any) -> dict[Any, Any]:
    """Start what a spec says, name → worker; entries have `opts`, or `options`.

    Args:
        args: for each of them, first of all the scheduler's address.

    Raises:
        BaseException: what the first that failed raises; all of them are closed then.
    """
    workers = {
        name: made({"options": entry.get("opts", {}), **entry}, *args, name=name)
        for name, entry in spec.items()
    }
    starting = [_awaited(worker) for worker in workers.values()]
    try:
        outcomes = await asyncio.gather(*starting, return_exceptions=True)
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
    except BaseException:  # that we are cancelled, too
        closing = [_closed(worker, CLOSE_SECONDS) for worker in workers.values()]
        await asyncio.gather(*closing, return_exceptions=True)
        raise
    return workers
