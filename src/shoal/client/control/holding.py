"""What the cluster holds: values put there, and let go of."""

from __future__ import annotations

from typing import Any

from shoal.client import scattering
from shoal.client.control.keys import plain_keys_in
from shoal.client.future import Future, futures_of
from shoal.client.lifecycle import ClientBase
from shoal.client.options import seconds_or
from shoal.observe.inside import TaskHost, current_task
from shoal.protocol.detached import CancelKeys
from shoal.protocol.keys import to_canonical
from shoal.protocol.operations import worker_names


class Holding(ClientBase):
    """`scatter`, `cancel` and `retry`."""

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
        """Put local values into workers' memory; in a task, into that of its own worker.

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
            UnpicklableValue: a value can't be pickled.
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
            home=self._home(),
        )
        face = self.face
        futures = [Future.of_record(k, face, r) for k, r in zip(keys, records, strict=True)]
        return scattering.packed(futures, keys, kind)

    def _home(self) -> TaskHost | None:
        """The worker whose task calls, if it is of this cluster."""
        task = current_task.get()
        if task is None or task.worker.scheduler_address != self.session.address:
            return None
        return task.worker

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
            futures: futures, or containers or collections that hold some; or keys, or a list of
                them, of tasks that this client wants or that were fired and forgotten.
            force: also those that other clients want.
            reason: why, for whoever asks for the result.
        """
        session = self.session
        session.require_running()
        records = [self.record_of(future) for future in futures_of(futures)]
        keys = plain_keys_in(futures)
        why = f"{reason or ''}\n{msg}" if msg else reason or ""  # it is taken apart again
        with session.lock:
            session.machine.cancel(dict.fromkeys(records), force=force, reason=why)
            if keys:
                session.machine.say(CancelKeys(keys, force, why))
        session.wake()

    async def retry(self, futures: Any, asynchronous: bool | None = None) -> None:
        """Run failed tasks again, and what they need that failed; they are pending at once.

        They may fail as often as at first.  Futures that did not fail stay as they are.
        """
        session = self.session
        session.require_running()
        records = [self.record_of(future) for future in futures_of(futures)]
        with session.lock:
            session.machine.retry(dict.fromkeys(records))
        session.wake()
