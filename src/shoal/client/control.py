"""The asynchronous client, by hand; the blocking one is generated from it.

Methods that only say something (`submit`, `map`) return at once and may be called from any
thread.  Coroutines wait on the session's loop.  Methods marked `finishes` do their work in the
caller's thread and return a coroutine of the rest, which the blocking client runs to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from shoal.client import scattering
from shoal.client.errors import WorkersLate
from shoal.client.future import Future, futures_of
from shoal.client.gathering import outcome_error
from shoal.client.machine import CANCELLED
from shoal.client.options import seconds_or, worker_names
from shoal.client.prospects import prospects_of, unless_hopeless
from shoal.client.submitting import Submitting
from shoal.comms import CallTimeoutError
from shoal.errors import UnsupportedOption
from shoal.ids import Key
from shoal.protocol import calls
from shoal.protocol.exceptions import from_failure
from shoal.protocol.keys import from_canonical, to_canonical
from shoal.protocol.payload import dump_function, load


class AsyncClient(Submitting):
    """A connection to a scheduler, for programs that run on an event loop.

    Await it, or use it in `async with`.  Its arguments are those of `Client`.
    """

    async def scatter(
        self,
        data: Any,
        workers: Any = None,
        broadcast: bool | int = False,
        direct: bool | None = None,
        hash: bool = True,
        timeout: Any = None,
        asynchronous: bool | None = None,
    ) -> Any:
        """Put local values into workers' memory.

        Args:
            data: a list, tuple, set or dict of values (dict keys become keys), or one value.
            workers: addresses, names or hosts that may take them.
            broadcast: a copy on every worker; a number: that many copies.
            direct: not used; values always go straight to workers.
            hash: equal values share one key.
            timeout: seconds to wait for a worker; the one for connecting by default.

        Returns:
            Futures, in a container of the type of `data`.

        Raises:
            NoWorkers: none was there in time.
            Exception: a value can't be pickled.
        """
        keys, values, kind = scattering.keys_of(data, hash)
        if not values:
            return scattering.packed([], keys, kind)
        ncopies = 0 if broadcast is True else max(1, int(broadcast))
        records = await scattering.Scattering(self.session, self.exchange).run(
            [to_canonical(key) for key in keys],
            values,
            workers=worker_names(workers),
            ncopies=ncopies,
            timeout_seconds=seconds_or(timeout, self._timeout_seconds),
        )
        face = self.face
        futures = [Future.of_record(k, face, r) for k, r in zip(keys, records, strict=True)]
        return scattering.packed(futures, keys, kind)

    async def cancel(
        self,
        futures: Any,
        asynchronous: bool | None = None,
        force: bool = False,
        reason: str | None = None,
        msg: str | None = None,
    ) -> None:
        """End tasks, and what depends on them.  A function that already runs is not interrupted.

        Args:
            force: also those that other clients want.
            reason: why, for whoever asks for the result.
        """
        self._cancel(futures, force, reason, msg)

    def _cancel(self, futures: Any, force: bool, reason: str | None, msg: str | None) -> None:
        session = self.session
        session.require_running()
        records = [self.record_of(future) for future in futures_of(futures)]
        why = " ".join(part for part in (reason, msg) if part)
        with session.lock:
            session.machine.cancel(dict.fromkeys(records), force=force, reason=why)
        session.wake()

    async def retry(self, futures: Any, asynchronous: bool | None = None) -> None:
        """Run failed tasks again.

        Raises:
            UnsupportedOption: always, for now.
        """
        raise UnsupportedOption(
            "retry", f"Submit the {len(futures_of(futures))} failed tasks again with pure=False."
        )

    def futures_of(self, futures: Any) -> list[Future]:
        """Futures inside containers and collections.

        Raises:
            CancelledError: one of them was cancelled.
        """
        return futures_of(futures, self)

    def refuse_cancelled(self, futures: Sequence[Future]) -> None:
        """Raise CancelledError if one of these was cancelled."""
        for future in futures:
            if future.record.status == CANCELLED:
                raise outcome_error(future.record)

    # --- questions ---------------------------------------------------------------------------

    async def who_has(self, futures: Any = None, **kwargs: Any) -> dict[Any, list[str]]:
        """Key -> addresses of the workers that hold its result.

        Args:
            futures: futures or keys; None: all that are in memory.
        """
        keys = None if futures is None else _keys_in(futures)
        found = await self.session.call(lambda request: calls.WhoHas(request, keys))
        return {from_canonical(key): list(holders) for key, holders in found.items()}

    async def has_what(self, workers: Any = None, **kwargs: Any) -> dict[str, list[Any]]:
        """Worker -> keys of the results that it holds."""
        names = None if workers is None else worker_names(workers)
        found = await self.session.call(lambda request: calls.HasWhat(request, names))
        return {worker: [from_canonical(key) for key in keys] for worker, keys in found.items()}

    async def nthreads(self, workers: Any = None, **kwargs: Any) -> dict[str, int]:
        """Worker -> its number of threads."""
        names = None if workers is None else worker_names(workers)
        found: dict[str, int] = await self.session.call(
            lambda request: calls.NThreads(request, names)
        )
        return found

    async def ncores(self, workers: Any = None, **kwargs: Any) -> dict[str, int]:
        """As `nthreads`."""
        return await self.nthreads(workers)

    async def scheduler_info(self, n_workers: int = -1, **kwargs: Any) -> dict[str, Any]:
        """What the scheduler and its workers are, in plain types.

        Args:
            n_workers: show so many of the workers; -1: all.
        """
        identity: calls.Identity = await self.session.call(calls.SchedulerIdentity)
        workers = {w.address: {"type": "Worker", **_fields(w)} for w in identity.workers}
        shown = list(workers)[: n_workers if n_workers >= 0 else None]
        return {
            "type": "Scheduler",
            "id": identity.id,
            "address": identity.address,
            "services": dict(identity.services),
            "started": identity.started_at,
            "n_workers": len(workers),
            "total_threads": sum(worker["nthreads"] for worker in workers.values()),
            "total_memory": sum(worker["memory_limit"] for worker in workers.values()),
            "workers": {address: workers[address] for address in shown},
        }

    async def wait_for_workers(self, n_workers: int, timeout: Any = None) -> None:
        """Wait until that many workers are connected.

        Args:
            timeout: seconds; None: no limit.

        Raises:
            ValueError: `n_workers` is no number from 1 on.
            TimeoutError: they did not come in time.
            CrashLoop, ProcessDied: they can't come, as those that were started died.
        """
        if type(n_workers) is not int or n_workers < 1:
            raise ValueError(f"`n_workers` must be a positive integer. Instead got {n_workers!r}.")
        seconds = seconds_or(timeout, None)
        try:
            await unless_hopeless(
                self.session.call(
                    lambda request: calls.AwaitWorkers(request, n_workers), timeout_seconds=seconds
                ),
                prospects_of(self.cluster),
                n_workers,
            )
        except CallTimeoutError as error:
            nhere = len(await self.nthreads())
            raise WorkersLate(n_workers, nhere, seconds_or(timeout, 0)) from error

    async def story(self, *keys: Any, on_error: str = "raise") -> list[tuple[Any, ...]]:
        """What happened to tasks, oldest first: (key, start, finish, cause, seconds)."""
        canonical = _keys_in(list(keys))
        found: list[calls.Transition] = await self.session.call(
            lambda request: calls.Story(request, canonical)
        )
        return [(from_canonical(t.key), t.start, t.finish, t.cause, t.at) for t in found]

    # --- code elsewhere ----------------------------------------------------------------------

    async def run(
        self,
        function: Callable[..., Any],
        *args: Any,
        workers: Any = None,
        wait: bool = True,
        nanny: bool = False,
        on_error: str = "raise",
        **kwargs: Any,
    ) -> Any:
        """Call a function in workers' processes, beside the tasks.

        Args:
            function: is given the worker as `dask_worker` if it takes that; may be a coroutine
                function.
            workers: addresses or names; None: all.
            wait: False: don't wait, and return None.
            on_error: `raise` what it raised; `return` that instead of a result; `ignore` those
                workers.

        Returns:
            Worker -> what the function returned there.
        """
        if on_error not in ("raise", "return", "ignore"):
            raise ValueError(f"on_error is 'raise', 'return' or 'ignore', not {on_error!r}")
        if nanny:
            raise UnsupportedOption("run(nanny=True)", "Call the function on the workers.")
        names = None if workers is None else worker_names(workers)
        payload = dump_function((function, args, kwargs))
        outcomes: dict[str, calls.Outcome] = await self.session.call(
            lambda request: calls.RunOnWorkers(request, payload, names, wait)
        )
        if not wait:
            return None
        results = {}
        for worker, outcome in outcomes.items():
            if outcome.failure is None:
                results[worker] = load(outcome.value)
                continue
            if on_error == "raise":
                raise from_failure(outcome.failure)
            if on_error == "return":
                results[worker] = from_failure(outcome.failure)
        return results

    async def run_on_scheduler(
        self, function: Callable[..., Any], *args: Any, wait: bool = True, **kwargs: Any
    ) -> Any:
        """Call a function in the scheduler's process.

        Args:
            function: is given the scheduler as `dask_scheduler` if it takes that; may be a
                coroutine function.
        """
        payload = dump_function((function, args, kwargs))
        outcome: calls.Outcome = await self.session.call(
            lambda request: calls.RunOnScheduler(request, payload, wait)
        )
        if outcome.failure is not None:
            raise from_failure(outcome.failure)
        return load(outcome.value) if wait else None

    async def retire_workers(
        self, workers: Any = None, close_workers: bool = True, **kwargs: Any
    ) -> list[str]:
        """Let workers go; what they ran is run elsewhere.  Returns their addresses."""
        names = list(await self.nthreads()) if workers is None else worker_names(workers)
        gone: list[str] = await self.session.call(lambda r: calls.CloseWorkers(r, names))
        return gone


def _keys_in(futures: Any) -> list[Key]:
    """Canonical keys of futures, keys, and collections of them."""
    parts = list(futures) if isinstance(futures, (list, set, frozenset)) else [futures]
    keys: list[Key] = []
    for part in parts:
        if isinstance(part, Future):
            keys.append(to_canonical(part.key))
        elif isinstance(part, (str, bytes, int, float, tuple)):
            keys.append(to_canonical(part))
        else:
            keys += [to_canonical(future.key) for future in futures_of(part)]
    return keys


def _fields(part: msgspec.Struct) -> dict[str, Any]:
    """A Struct as a plain dict."""
    return {name: getattr(part, name) for name in part.__struct_fields__}
