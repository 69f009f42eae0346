"""The answering side of a comm: what is heard is done and answered, one message after another."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping, MutableMapping
from inspect import isawaitable
from typing import Any, Final, Protocol

from shoal.comms.cancellation import is_our_cancellation
from shoal.comms.errors import CommClosedError
from shoal.compat.raising import error_message
from shoal.compat.servers.errors import NoOperation
from shoal.observe.handling import ABOUT_THE_CALL, call_handler
from shoal.observe.status import Status

logger = logging.getLogger("shoal.core")

STREAM: Final = "connection_stream"
ENDS_STREAM: Final = ("close-stream", "stream-closed")


class Answering(Protocol):
    """Whose operations are called."""

    @property
    def handlers(self) -> Mapping[str, Callable[..., Any]]:
        """Operations by name."""

    @property
    def stream_handlers(self) -> Mapping[str, Callable[..., Any]]:
        """What is done with messages of streams, by name."""

    @property
    def blocked_handlers(self) -> Collection[str]:
        """Names that are refused."""

    @property
    def reasons(self) -> Mapping[str, str]:
        """Why there is nothing under a name, where that is known."""


async def converse(
    service: Answering,
    who: str,
    comm: Any,
    comms: MutableMapping[Any, str | None],
    is_closing: Callable[[], bool],
    count: Callable[[str], None] | None = None,
) -> None:
    """Answer messages, until the comm ends, or one of them wants it to, or the service closes.

    Args:
        who: the service, for the texts of errors.
        comms: has the operation that each comm is busy with, or None.
        is_closing: asked after each message.
        count: told the name of each operation.
    """
    comms[comm] = None
    try:
        while not comm.closed() and not is_closing():
            try:
                message = await comm.read()
            except CommClosedError:
                return
            except Exception as error:  # it can't be read; the comm itself is as good as ever
                await _say(comm, error_message(error, status="uncaught-error"), None)
                continue
            if not await _answer(service, who, comm, message, comms, count):
                return
            del message  # what it brought must not live until the next one comes
    finally:
        del comms[comm]
        if not comm.closed():
            try:
                await comm.close()
            except Exception as error:
                logger.debug("%r could not be closed: %s", comm, error)
                comm.abort()


async def _answer(
    service: Answering,
    who: str,
    comm: Any,
    message: Any,
    comms: MutableMapping[Any, str | None],
    count: Callable[[str], None] | None,
) -> bool:
    """Do what a message wants, and say what came of it; whether the comm goes on."""
    if not isinstance(message, dict) or not isinstance(message.get("op"), str):
        await _say(comm, error_message(NoOperation(message), status="uncaught-error"), None)
        return True
    name, goes_on = message["op"], not message.get("close", False)
    families = message.get("serializers")
    if count is not None:
        count(name)
    if name == "close":
        await _say(comm, "OK", families)
        return False
    comms[comm] = name
    try:
        if name == STREAM and STREAM not in service.handlers:
            await converse_in_stream(service, comm)
            return False
        arguments = {key: value for key, value in message.items() if key not in ABOUT_THE_CALL}
        handlers, blocked = service.handlers, service.blocked_handlers
        result = await call_handler(who, handlers, name, arguments, comm, blocked, service.reasons)
    except CommClosedError as error:
        if comm.closed():  # there is nobody to be told
            return False
        result = error_message(error, status="uncaught-error")
    except BaseException as error:
        if is_our_cancellation(error):
            raise
        result = error_message(error, status="uncaught-error")
    finally:
        if comm in comms:
            comms[comm] = None
    if message.get("reply", True) and result is not Status.dont_reply:
        await _say(comm, result, families)
    return goes_on


async def _say(comm: Any, answer: Any, families: Any) -> None:
    """Send an answer, if there is still somebody to hear it."""
    try:
        await comm.write(answer, serializers=families)
    except CommClosedError:
        return
    except Exception as error:  # it can't be serialised
        await comm.write(error_message(error, status="uncaught-error"))


async def converse_in_stream(
    service: Answering, comm: Any, extra: Mapping[str, Any] | None = None
) -> None:
    """Hear messages that nobody waits for an answer of, in their order, until the comm ends.

    Each is a dict with the name of one of `stream_handlers` as `op`, or a list of such.

    Args:
        extra: given to each handler as well.
    """
    try:
        while True:
            try:
                messages = await comm.read()
            except CommClosedError:
                return
            if not isinstance(messages, list | tuple):
                messages = (messages,)
            for message in messages:
                if message == "OK":  # the answer to what made this a stream
                    continue
                given = {**message, **(extra or {})}
                name = given.pop("op")
                if name in ENDS_STREAM:
                    return
                given.pop("reply", None)
                result = service.stream_handlers[name](**given)
                if isawaitable(result):
                    await result
    except asyncio.CancelledError:
        raise
    except Exception:
        logger.exception("The stream over %r ends, as one of its messages could not be heard", comm)
    finally:
        await comm.close()
