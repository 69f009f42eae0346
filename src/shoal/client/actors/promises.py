"""Values that a client will have later, and that tasks depend on already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from shoal.client.future import Future
from shoal.client.machine import Record
from shoal.client.scattering import Scattering
from shoal.client.session import Session
from shoal.comms.exchange import ReplicaExchange
from shoal.protocol.actors import BreakPromise, PromiseValue
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import to_canonical
from shoal.protocol.messages import Failure

PLACE_SECONDS_MAX: Final = 30.0
"""How long a promised value waits for a worker to take it."""

Keep = Callable[[Failure | None, Any], None]
"""Why there is no value, or None; and the value.  From any thread."""


class Keeping:
    """The values of one session that are on their way."""

    def __init__(self) -> None:
        self.tasks: set[asyncio.Task[None]] = set()  # only to keep them alive


def promised(key: str, face: Any) -> tuple[Future, Keep]:
    """A future of a value that will come, and what to call when it has."""
    session: Session = face.session
    canonical = to_canonical(key)
    with session.lock:
        session.require_running()
        records, new = session.machine.want_scattered([canonical])
        record = records[0]
        session.machine.hold(record)  # until the value is there, however soon the futures go
        if new:
            session.machine.say(PromiseValue(record.number, canonical))
    session.wake()
    exchange = face.exchange

    def keep(failure: Failure | None, value: Any) -> None:
        def begin() -> None:
            tasks = session.state_of(Keeping).tasks
            task = asyncio.ensure_future(_keep(session, exchange, record, failure, value))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        assert session.loop is not None
        try:
            session.loop.call_soon_threadsafe(begin)
        except RuntimeError:
            pass  # the client is closed, and nobody waits

    return Future.of_record(key, face, record), keep


async def _keep(
    session: Session,
    exchange: ReplicaExchange,
    record: Record,
    failure: Failure | None,
    value: Any,
) -> None:
    """Bring the value to a worker, or say why there is none."""
    try:
        if failure is None and session.is_open:
            try:
                await Scattering(session, exchange).bring(record, value, PLACE_SECONDS_MAX)
            except Exception as error:
                failure = to_failure(error, record.key)
        if failure is not None and session.is_open:
            session.say(BreakPromise(record.number, failure))
            await session.wait_all([record])
    finally:
        session.drop(record)
