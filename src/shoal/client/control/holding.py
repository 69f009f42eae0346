"""What the cluster holds: values put there, and let go of."""

from __future__ import annotations

from typing import Any

from shoal.client import scattering
from shoal.client.future import Future, futures_of
from shoal.client.lifecycle import ClientBase
from shoal.client.options import seconds_or, worker_names
from shoal.errors import UnsupportedOption
from shoal.protocol.keys import to_canonical


class Holding(ClientBase):
    """`scatter` and `cancel`."""

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
