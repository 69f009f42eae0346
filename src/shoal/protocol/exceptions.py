"""Exceptions on their way from where they were raised to whoever asked.

Both directions are total: whatever an exception's own code does, `to_failure` gives a Failure and
`from_failure` an exception, with as much of the original (type, arguments, attributes, traceback,
causes, notes) as can be saved.  What can't be is there as text.
"""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable, Iterator
from types import FunctionType, TracebackType
from typing import Any, Final, NamedTuple

from shoal.ids import Key
from shoal.protocol.keys import to_text
from shoal.protocol.messages import Failure
from shoal.protocol.payload import TooLarge, _BoundedStream, kind_of

TEXT_MAX: Final = 64 * 1024
"""Longest message or traceback, in characters; the rest is cut, and the cut is marked."""

EXCEPTION_NBYTES_MAX: Final = 1024 * 1024
"""A larger exception travels as text only: schedulers keep failures in memory."""

_NO_KEY: Final = Key("")
_FRAMES_MAX: Final = 100  # of a traceback; an endless recursion has 1000, all alike
_PARTS_MAX: Final = 100  # arguments, attributes, notes of an exception that is too large whole
_REASON_MAX: Final = 300
_LINKS: Final = ("__cause__", "__context__", "__suppress_context__")
_TYPE_NAME: Final = type.__dict__["__name__"]
_TRACEBACK: Final = BaseException.__dict__["__traceback__"]


class RemoteError(Exception):
    """Something was raised elsewhere that can't be rebuilt here; this is what it said."""

    def __init__(self, text: str) -> None:
        """`text`: type and message of the original, e.g. "ValueError: not this way"."""
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return self.text


def to_failure(exception: BaseException, key: Key = _NO_KEY, worker: str = "") -> Failure:
    """What is left of `exception` once it travels.  Never raises.

    Args:
        exception: any; it is not changed.
        key: of the task that raised it.
        worker: address of the worker that ran it.

    Cost: some 100 us.
    """
    text = text_of(exception)
    traceback_text = _traceback_text_of(exception, text)
    return Failure(
        exception=_dump(exception, text, traceback_text),
        text=text,
        traceback_text=traceback_text,
        origin=key,
        worker=worker,
    )


def from_failure(failure: Failure) -> BaseException:
    """The exception of `failure`, a new one at each call, ready to be raised.  Never raises."""
    problem = "it could not be pickled where it was raised"
    if failure.exception:
        try:
            exception = pickle.loads(failure.exception)
            if isinstance(exception, BaseException):
                return exception
            problem = f"it was rebuilt as {_name_of(type(exception))}"
        except BaseException as error:
            problem = f"loading it here raised {text_of(error)}"
    stand_in = RemoteError(failure.text)
    stand_in.add_note(f"The exception itself could not be brought here: {problem}.")
    if failure.traceback_text:
        stand_in.add_note(failure.traceback_text)
    here = [(__file__, "from_failure", __name__, from_failure.__code__.co_firstlineno)]
    return stand_in.with_traceback(_to_traceback(here))


def text_of(exception: BaseException) -> str:
    """Type and message, e.g. "ValueError: not this way"; never longer than TEXT_MAX.

    Never raises, whatever the exception's own code does.
    """
    name = _name_of(type(exception))
    try:
        message = str.__str__(str(exception))  # of `str` itself, should it be of a subclass
    except BaseException as error:
        message = f"<its message can't be made: {_name_of(type(error))}>"
    return _cut(f"{name}: {message}" if message else name)


def add_note(exception: BaseException, note: str) -> None:
    """Add to what `exception` says, where it allows that.  Never raises."""
    try:
        BaseException.add_note(exception, note)
    except BaseException:
        pass  # it has ideas of its own about attributes; what it says by itself has to do


def tell_unreadable(exception: BaseException, key: Key, what: str = "result") -> None:
    """Let `exception` say whose `what` it was that could not be read here.  Never raises."""
    add_note(
        exception,
        f"Raised while unpickling the {what} of task {to_text(key)!r}. Look at how its class does "
        "that (__setstate__, __reduce__, __new__), and whether the same packages are installed "
        "here as where it was pickled.",
    )


class _Attempt(NamedTuple):
    """One way to pickle an exception."""

    with_links: bool  # its causes and contexts too
    without_init: bool  # rebuild it without calling its own __init__
    notes: tuple[str, ...] = ()  # to be added
    lightened: bool = False  # leave out what can't be pickled, or is too large


def _dump(exception: BaseException, text: str, traceback_text: str) -> bytes:
    """The most faithful pickle of `exception` that is small enough and loads again; else b""."""
    chain = (traceback_text,)
    attempts = (
        _Attempt(with_links=True, without_init=False),
        _Attempt(with_links=True, without_init=True),
        _Attempt(with_links=False, without_init=False, notes=chain),
        _Attempt(with_links=False, without_init=True, notes=chain),
        _Attempt(with_links=False, without_init=True, notes=chain, lightened=True),
    )
    try:
        shortened = _shortened(exception)
    except BaseException:
        shortened = exception
    for attempt in attempts:
        stream = _dump_one(shortened, attempt)
        if stream is not None and _loads_as(stream, type(exception)):
            return stream
    try:
        stand_in = RemoteError(text).with_traceback(_TRACEBACK.__get__(exception))
        stand_in.add_note(f"The original is of type {kind_of(exception)}.")
        stand_in.add_note(traceback_text)
        return _dump_one(stand_in, _Attempt(with_links=False, without_init=False)) or b""
    except BaseException:
        return b""


def _dump_one(exception: BaseException, attempt: _Attempt) -> bytes | None:
    """`exception` pickled in one way, or None if that fails or is too large."""
    try:
        pickled = _pickled(exception, attempt, EXCEPTION_NBYTES_MAX)
        if b"__main__" not in pickled:
            return pickled
    except BaseException:
        pass  # its class may be one that only cloudpickle can send
    try:
        return _cloudpickled(exception, attempt)
    except BaseException:
        return None


def _loads_as(pickled: bytes, kind: type) -> bool:
    """Whether it can be rebuilt here; many classes can be pickled, but not loaded again."""
    try:
        return type(pickle.loads(pickled)) is kind
    except BaseException:
        return False


class _ExceptionPickler(pickle.Pickler):
    """Keeps what pickle leaves behind of exceptions: tracebacks, causes, contexts, notes."""

    def __init__(self, stream: _BoundedStream, attempt: _Attempt) -> None:
        super().__init__(stream, 5)
        self.attempt = attempt

    def reducer_override(self, value: Any) -> Any:
        return _reduce(value, self.attempt)


def _pickled(value: object, attempt: _Attempt, nbytes_max: int) -> bytes:
    stream = _BoundedStream(nbytes_max)
    _ExceptionPickler(stream, attempt).dump(value)
    return b"".join(stream.parts)


def _cloudpickled(value: object, attempt: _Attempt) -> bytes:
    import cloudpickle

    class CloudExceptionPickler(cloudpickle.Pickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            reduced = _reduce(value, attempt)
            return super().reducer_override(value) if reduced is NotImplemented else reduced

    stream = _BoundedStream(EXCEPTION_NBYTES_MAX)
    CloudExceptionPickler(stream, 5).dump(value)
    return b"".join(stream.parts)


def _reduce(value: Any, attempt: _Attempt) -> Any:
    if isinstance(value, TracebackType):
        return _to_traceback, (_frames_of(value),)
    if isinstance(value, BaseException):
        return _reduce_exception(value, attempt)
    return NotImplemented


def _reduce_exception(exception: BaseException, attempt: _Attempt) -> Any:
    """As pickle would, but for a state that has our additions beside the exception's own."""
    function: Callable[..., Any]
    left_out: list[str] = []
    state: Any
    if attempt.without_init:
        arguments, state = exception.args, vars(exception)
        if attempt.lightened:
            arguments, state, left_out = _lightened(exception)
        function, arguments = _without_init, (type(exception), arguments)
    else:
        reduced = exception.__reduce_ex__(5)
        if isinstance(reduced, str) or len(reduced) > 3:
            return NotImplemented  # it has its own ways
        function, arguments = reduced[0], reduced[1]
        state = reduced[2] if len(reduced) == 3 else None
    notes = [*_notes_of(exception), *left_out, *attempt.notes]
    links: tuple[Any, ...] = ()
    if attempt.with_links:
        links = (exception.__cause__, exception.__context__, exception.__suppress_context__)
    additions = (state, _TRACEBACK.__get__(exception), notes, links)
    # In the state, which pickle writes after the object is known, so that cycles are no problem.
    setter = _set_attributes if attempt.without_init else _set_state
    return function, arguments, additions, None, None, setter


def _lightened(exception: BaseException) -> tuple[tuple[Any, ...], dict[str, Any], list[str]]:
    """(arguments, attributes, notes): those that can travel, and what became of the others."""
    arguments: list[Any] = []
    notes: list[str] = []
    for place, part in enumerate(exception.args[:_PARTS_MAX]):
        problem = "" if isinstance(exception, BaseExceptionGroup) else _problem_of(part)
        arguments.append(f"<{problem}>" if problem else part)
        if problem:
            notes.append(f"Argument {place + 1} could not be brought here: {problem}.")
    state: dict[str, Any] = {}
    for name, value in list(vars(exception).items())[:_PARTS_MAX]:
        problem = "" if name == "__notes__" else _problem_of(value)
        if problem:
            notes.append(f"The attribute {name!r} could not be brought here: {problem}.")
        else:
            state[name] = value
    return tuple(arguments), state, notes


def _problem_of(part: object) -> str:
    """Why a part of an exception can't travel; empty if it can."""
    attempt = _Attempt(with_links=False, without_init=True)
    try:
        try:
            pickled = _pickled(part, attempt, EXCEPTION_NBYTES_MAX // 2)
        except TooLarge:
            return f"a {kind_of(part)} that is too large"
        except Exception:
            pickled = _cloudpickled(part, attempt)
        pickle.loads(pickled)
    except BaseException as error:
        return f"a {kind_of(part)} raised {text_of(error)[:_REASON_MAX]}"
    return ""


def _notes_of(exception: BaseException) -> list[str]:
    """Its notes, bounded; what a user put in their place is as good as none."""
    notes = getattr(exception, "__notes__", None)
    if not isinstance(notes, list | tuple):
        return []
    return [_cut(str(note)) for note in notes[:_PARTS_MAX]]


def _without_init(kind: type[BaseException], arguments: tuple[Any, ...]) -> BaseException:
    exception = kind.__new__(kind, *arguments)
    object.__setattr__(exception, "args", arguments)
    return exception


def _set_state(exception: BaseException, additions: tuple[Any, ...]) -> None:
    if additions[0] is not None:
        exception.__setstate__(additions[0])
    _set_additions(exception, additions)


def _set_attributes(exception: BaseException, additions: tuple[Any, ...]) -> None:
    vars(exception).update(additions[0])
    _set_additions(exception, additions)


def _set_additions(exception: BaseException, additions: tuple[Any, ...]) -> None:
    _, trace, notes, links = additions
    put = object.__setattr__  # an exception may forbid its own
    if notes:
        put(exception, "__notes__", notes)
    if links:
        for name, link in zip(_LINKS, links, strict=True):
            put(exception, name, link)
    put(exception, "__traceback__", trace)


def _frames_of(trace: TracebackType | None) -> list[tuple[str, str, str, int]]:
    """(file, function, module, line) of each frame, outermost first; the middle may be left out."""
    frames: list[tuple[str, str, str, int]] = []
    while trace is not None:
        code = trace.tb_frame.f_code
        module = str(trace.tb_frame.f_globals.get("__name__", "?"))
        frames.append((code.co_filename, code.co_name, module, trace.tb_lineno or 0))
        trace = trace.tb_next
    if len(frames) > _FRAMES_MAX:
        half = _FRAMES_MAX // 2
        nhidden = len(frames) - 2 * half
        hidden = (f"<{nhidden} more frames>", "...", "?", 1)
        frames = [*frames[:half], hidden, *frames[-half:]]
    return frames


def _never_run() -> Iterator[None]:
    yield


_FRAME_CODE: Final = _never_run.__code__.replace(
    # Each instruction is on the first line, at no column: else a line of carets is printed.
    co_linetable=bytes((0x80 | 13 << 3 | 7, 0)) * (len(_never_run.__code__.co_code) // 16 + 1)
)


def _to_traceback(frames: list[tuple[str, str, str, int]]) -> TracebackType | None:
    """A traceback as if these frames had been run here.  Cost: 1 us per frame.

    Its frames are those of generators that never begin, because they have no caller: a frame that
    was run refers to whoever called it, so the exception would hold all that stands on the stack
    of who looks at it, itself and the futures there included, until the next garbage collection.
    """
    trace: TracebackType | None = None
    for filename, function, module, line in reversed(frames):
        code = _FRAME_CODE.replace(
            co_filename=filename, co_name=function, co_qualname=function, co_firstlineno=line
        )
        names = {"__name__": module, "__file__": filename}
        trace = TracebackType(trace, FunctionType(code, names)().gi_frame, 0, line)
    return trace


def _shortened(exception: BaseException) -> BaseException:
    """`exception`, or a copy of it if it says more than anybody will read."""
    arguments = exception.args
    if not any(isinstance(part, str | bytes) and len(part) > TEXT_MAX for part in arguments):
        return exception
    copy = _without_init(type(exception), tuple([_cut_argument(part) for part in arguments]))
    copy.__dict__.update(vars(exception))
    copy.__cause__, copy.__context__ = exception.__cause__, exception.__context__
    copy.__suppress_context__ = exception.__suppress_context__
    return copy.with_traceback(exception.__traceback__)


def _cut_argument(part: object) -> object:
    if isinstance(part, str):
        return _cut(part)
    if isinstance(part, bytes) and len(part) > TEXT_MAX:
        return part[:TEXT_MAX]
    return part


def _cut(text: str) -> str:
    """`text` with its middle cut out if it is too long, and free of what UTF-8 can't express."""
    if len(text) > TEXT_MAX:
        half = TEXT_MAX // 2
        ncut = len(text) - 2 * half
        text = f"{text[:half]} ... [{ncut:,} characters cut] ... {text[-half:]}"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _name_of(kind: type) -> str:
    """The class's own name, past a metaclass that has another idea of it."""
    return _cut(_TYPE_NAME.__get__(kind))


def _traceback_text_of(exception: BaseException, text: str) -> str:
    try:
        return _cut("".join(traceback.format_exception(exception)))
    except BaseException as error:
        problem = _name_of(type(error))
    try:  # without what the exception's own code has to say
        frames = "".join(traceback.format_tb(_TRACEBACK.__get__(exception)))
        return _cut(f"{frames}{text}\n")
    except BaseException:
        return f"{text}\n<its traceback can't be made: {problem}>\n"
