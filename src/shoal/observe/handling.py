"""What a service answers to by name, and how it is called.

A service's `handlers` is a dict that programs add to: `scheduler.handlers["mine"] = function`.  A
function whose first parameter is named `comm` is given the way to whoever asks; all other arguments
are given by name.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping
from typing import Any, Final, NoReturn

from shoal.comms.cancellation import is_our_cancellation
from shoal.observe.errors import (
    NoConversation,
    NotForThisCall,
    OperationBlocked,
    OperationUnknown,
)
from shoal.protocol.exceptions import from_failure, to_failure
from shoal.protocol.messages import Failure
from shoal.protocol.payload import dump_function, load
from shoal.protocol.running import Outcome

Handler = Callable[..., Any]

ABOUT_THE_CALL: Final = ("op", "reply", "close", "serializers")
"""Entries of a message that are no arguments."""

NO_REASONS: Final[Mapping[str, str]] = {}


class Counted:
    """How often each thing was said, as upstream's counters show it."""

    def __init__(self) -> None:
        self.components: list[Counter[Any]] = [Counter()]
        """One, of all time."""

    def add(self, item: Any) -> None:
        """Once more."""
        self.components[0][item] += 1


class Sealed:
    """What was pickled elsewhere, on its way through: whoever unpickles it has what is in it."""

    def __init__(self, opened_by: Callable[[Any], Any], content: Any) -> None:
        self._opened_by, self._content = opened_by, content

    def __reduce__(self) -> tuple[Callable[[Any], Any], tuple[Any]]:
        return self._opened_by, (self._content,)


class SealedMessage(dict[str, Any]):
    """The operation that a broadcast names, and its arguments as they were pickled."""

    def __init__(self, name: str, arguments: bytes) -> None:
        super().__init__(op=name)
        self.arguments = arguments

    def __reduce__(self) -> tuple[type[SealedMessage], tuple[str, bytes]]:
        return SealedMessage, (self["op"], self.arguments)


class PassedOn(Exception):
    """Something failed elsewhere, and is passed on to whoever has asked as it came."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class Caller:
    """In place of a connection, for handlers that want to know who asks.

    The answer goes back by itself.  Who wants a conversation opens a connection: `rpc(address)`.
    """

    def __init__(self, local_address: str) -> None:
        """`local_address`: of the service that is called."""
        self.local_address, self.peer_address = local_address, ""

    def __repr__(self) -> str:
        return f"<Caller of {self.local_address}>"

    async def read(self, deserializers: Any = None) -> NoReturn:
        """Raises NoConversation."""
        raise NoConversation(self.local_address)

    async def write(self, msg: Any, serializers: Any = None, on_error: Any = None) -> NoReturn:
        """Raises NoConversation."""
        raise NoConversation(self.local_address)


def expects_comm(function: Handler) -> bool:
    """Whether the first parameter is named `comm`."""
    try:
        parameters = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a built-in one that does not tell
        return False
    return parameters[:1] == ["comm"]


async def call_handler(
    service: str,
    handlers: Mapping[str, Handler],
    name: str,
    arguments: Mapping[str, Any],
    comm: Any,
    blocked: Collection[str] = (),
    reasons: Mapping[str, str] = NO_REASONS,
) -> Any:
    """What the handler returns, awaited if it is to be.

    Args:
        service: for the texts of errors.
        blocked: names that are refused.
        reasons: why there is nothing under a name, where that is known.

    Raises:
        OperationUnknown: there is none of that name (an AttributeError).
        OperationBlocked: it is refused (a ValueError).
        BaseException: what it raises.
    """
    if name in blocked:
        raise OperationBlocked(service, name)
    function = handlers.get(name)
    if function is None:
        known = sorted(set(handlers) - set(blocked))
        raise OperationUnknown(service, name, known, reasons.get(name, ""))
    if expects_comm(function):
        result = function(comm, **arguments)
    else:
        result = function(**arguments)
    return await result if inspect.isawaitable(result) else result


async def outcome_of(
    service: str,
    handlers: Mapping[str, Handler],
    name: str,
    arguments: bytes,
    comm: Any,
    blocked: Collection[str] = (),
    reasons: Mapping[str, str] = NO_REASONS,
) -> Outcome:
    """As `call_handler`, of pickled arguments; whatever is raised is the outcome."""
    try:
        given: Any = load(arguments)
        result = await call_handler(service, handlers, name, given, comm, blocked, reasons)
        return Outcome(dump_function(result))
    except PassedOn as error:
        return Outcome(failure=error.failure)
    except BaseException as error:
        if is_our_cancellation(error):
            raise
        return Outcome(failure=to_failure(error))


def arguments_of(message: Any) -> tuple[str, dict[str, Any]]:
    """The operation that a message names, and its arguments.

    Raises:
        NotForThisCall: it names none (a ValueError).
    """
    name = message.get("op") if isinstance(message, Mapping) else None
    if not isinstance(name, str):
        raise NotForThisCall(message)
    return name, {key: value for key, value in message.items() if key not in ABOUT_THE_CALL}


def value_of(outcome: Outcome, on_error: str = "raise") -> Iterator[Any]:
    """Its value, or what `on_error` makes of a failure: see `Scheduler.broadcast`; none if ignored.

    Raises:
        BaseException: what has failed, if it is to be raised.
    """
    if outcome.failure is None:
        yield load(outcome.value)
        return
    error = from_failure(outcome.failure)
    if on_error == "raise":
        raise error
    if on_error == "return":
        yield error
    elif on_error == "return_pickle":
        yield dump_function(error)


def sealed(outcome: Outcome, on_error: str = "raise") -> Iterator[Any]:
    """As `value_of`, for those who only pass it on: nothing is unpickled here.

    Raises:
        PassedOn: what has failed, if it is to be raised.
    """
    failure = outcome.failure
    if failure is None:
        yield Sealed(load, outcome.value)
    elif on_error == "raise":
        raise PassedOn(failure)
    elif on_error == "return":
        yield Sealed(from_failure, failure)
    elif on_error == "return_pickle":
        yield failure.exception or dump_function(from_failure(failure))


def seal(message: Mapping[str, Any]) -> SealedMessage:
    """The message of a broadcast, whose arguments are opened where they are used only.

    Raises:
        NotForThisCall: it names no operation (a ValueError).
    """
    name, arguments = arguments_of(message)
    return SealedMessage(name, dump_function(arguments))


def packed(message: Mapping[str, Any]) -> tuple[str, bytes]:
    """The operation that a message names, and its arguments, pickled.  Raises as `seal`."""
    whole = message if isinstance(message, SealedMessage) else seal(message)
    return whole["op"], whole.arguments


async def report_of(
    call: Callable[..., Awaitable[Outcome]],
    function: Any,
    args: Any,
    kwargs: Any,
    offered: Mapping[str, Any],
    *,
    wait: bool,
) -> dict[str, Any]:
    """What became of a function that was called by name, as upstream's services tell it.

    Args:
        call: see `comms.functions.call_function`.
        function, args, kwargs: themselves, or pickled.
        offered: given to the function if it has parameters of these names.
    """
    given = (function, args, kwargs)
    opened: list[Any] = [load(part) if isinstance(part, bytes) else part for part in given]
    payload = dump_function((opened[0], tuple(opened[1] or ()), dict(opened[2] or {})))
    outcome = await call(payload, offered, wait=wait)
    if outcome.failure is None:
        return {"status": "OK", "result": load(outcome.value)}
    error = from_failure(outcome.failure)
    return {
        "status": "error",
        "exception": error,
        "traceback": error.__traceback__,
        "exception_text": repr(error),
        "traceback_text": outcome.failure.traceback_text,
    }
