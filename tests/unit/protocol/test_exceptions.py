"""Whatever was raised arrives as something that can be raised, with all that can be saved."""

import asyncio
import dataclasses
import threading
import traceback
from typing import Any

import dask  # noqa: F401 - loaded before odd classes exist, which some of its imports stumble over
import msgspec
import pytest

from shoal.ids import Key
from shoal.protocol.exceptions import (
    EXCEPTION_NBYTES_MAX,
    TEXT_MAX,
    RemoteError,
    from_failure,
    tell_unreadable,
    text_of,
    to_failure,
)
from shoal.protocol.messages import Failure


def raised(error: BaseException) -> BaseException:
    """`error` with a traceback."""
    try:
        raise error
    except BaseException as caught:
        return caught


def travel(error: BaseException) -> BaseException:
    """To the wire and back."""
    failure = to_failure(error, Key("x"), "tcp://w:1")
    decoded = msgspec.msgpack.decode(msgspec.msgpack.encode(failure), type=Failure)
    assert decoded == failure
    assert (failure.origin, failure.worker) == ("x", "tcp://w:1")
    return from_failure(decoded)


class TwoArguments(Exception):
    """Pickles, and can't be loaded by plain pickle."""

    def __init__(self, first: object, second: object) -> None:
        super().__init__(f"{first} and {second}")
        self.first = first


class Unpicklable(Exception):
    def __init__(self) -> None:
        super().__init__("with a lock")
        self.lock = threading.Lock()


class OnlyOnce(Exception):
    """Pickles, and what it loads as is no exception."""

    def __reduce__(self) -> Any:
        return dict, ()


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class Wicked(Exception):
    def __str__(self) -> str:
        raise SystemExit(1)

    def __reduce__(self) -> Any:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "error",
    [
        ValueError("not this way"),
        KeyError("k"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        StopIteration(5),
        MemoryError(),
        OSError(2, "No such file", "/x"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
        TwoArguments(1, 2),
    ],
    ids=lambda error: type(error).__name__,
)
def test_type_text_arguments_and_traceback_survive(error: BaseException) -> None:
    """Exceptions of all sorts, the one with a signature of its own included."""
    arrived = travel(raised(error))
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert arrived.args == error.args
    assert arrived.__traceback__ is not None
    names = [frame.name for frame in traceback.extract_tb(arrived.__traceback__)]
    assert names == ["raised"]


def test_attributes_notes_causes_and_contexts_survive() -> None:
    """Also in a circle."""
    error = TwoArguments(1, 2)
    error.add_note("note well")
    cause = raised(KeyError("cause"))
    error.__cause__ = cause
    cause.__context__ = error
    arrived: Any = travel(raised(error))
    assert arrived.first == 1
    assert arrived.__notes__ == ["note well"]
    assert isinstance(arrived.__cause__, KeyError)
    assert arrived.__cause__.__traceback__ is not None
    assert arrived.__cause__.__context__ is arrived
    assert arrived.__suppress_context__


def test_groups_arrive_whole() -> None:
    """Each member with its own traceback."""
    arrived = travel(raised(ExceptionGroup("many", [raised(ValueError(1)), TypeError("t")])))
    assert isinstance(arrived, ExceptionGroup)
    assert [type(member) for member in arrived.exceptions] == [ValueError, TypeError]
    assert arrived.exceptions[0].__traceback__ is not None


def test_an_exception_of_a_local_class_arrives() -> None:
    """Plain pickle can't find it."""

    class Local(ValueError):
        pass

    arrived = travel(raised(Local("here")))
    assert type(arrived) is Local
    assert str(arrived) == "here"


@pytest.mark.parametrize("error", [OnlyOnce("once"), Mute("m"), Wicked("w")])
def test_exceptions_whose_own_code_fails_keep_their_type(error: Exception) -> None:
    """They are rebuilt without asking their code; `except OnlyOnce` works."""
    failure = to_failure(raised(error))
    assert type(error).__name__ in failure.text
    arrived = travel(raised(error))
    assert type(arrived) is type(error)
    assert arrived.args == error.args
    assert arrived.__traceback__ is not None


def test_an_exception_that_loads_only_where_it_was_raised_arrives_as_text() -> None:
    """Here its check passes, there loading it raises."""
    failure = to_failure(raised(Fickle("f")))
    LOADS.clear()
    arrived = from_failure(failure)
    assert isinstance(arrived, RemoteError)
    assert str(arrived) == "Fickle: f"
    assert "Fickle" in "".join(arrived.__notes__)


LOADS = [1]


def load_fickle(text: str) -> Exception:
    LOADS.pop()
    LOADS.append(1)
    return Fickle(text)


class Fickle(Exception):
    def __reduce__(self) -> Any:
        return load_fickle, self.args


class OnlyWithKeyword(Exception):
    """Can't be made again by anybody who doesn't know its keyword, and holds a lock."""

    def __new__(cls, *, reason: str) -> "OnlyWithKeyword":
        return super().__new__(cls, reason)

    def __init__(self, *, reason: str) -> None:
        super().__init__(reason)
        self.lock = threading.Lock()


def test_a_stand_in_names_the_original() -> None:
    """RemoteError, with the type in a note."""
    arrived = travel(raised(OnlyWithKeyword(reason="with a lock")))
    assert isinstance(arrived, RemoteError)
    assert str(arrived) == "OnlyWithKeyword: with a lock"
    assert any("test_exceptions.OnlyWithKeyword" in note for note in arrived.__notes__)


def test_parts_that_can_not_travel_are_left_out_and_told() -> None:
    """The type stays, so that `except Unpicklable` works, and what else is there."""
    error = Unpicklable()
    error.args = ("with a lock", error.lock, 3)
    error.code = 17  # type: ignore[attr-defined]
    error.add_note("note well")
    arrived: Any = travel(raised(error))
    assert type(arrived) is Unpicklable
    assert (arrived.args[0], arrived.args[2], arrived.code) == ("with a lock", 3, 17)
    assert "_thread.lock" in arrived.args[1]
    assert not hasattr(arrived, "lock")
    told = "\n".join(arrived.__notes__)
    assert "note well" in told
    assert "The attribute 'lock' could not be brought here" in told
    assert "Argument 2 could not be brought here" in told
    assert arrived.__traceback__ is not None


def test_huge_messages_are_cut_and_the_cut_is_marked() -> None:
    """A gigabyte of text helps nobody."""
    failure = to_failure(ValueError("x" * 10_000_000))
    assert len(failure.text) < TEXT_MAX + 100
    assert "characters cut" in failure.text
    assert len(failure.exception) < 2 * TEXT_MAX
    arrived = from_failure(failure)
    assert type(arrived) is ValueError
    assert "characters cut" in str(arrived)


def test_an_exception_that_carries_too_much_arrives_without_it() -> None:
    """The scheduler keeps failures in memory."""
    error = ValueError("small text")
    error.cargo = b"x" * (2 * EXCEPTION_NBYTES_MAX)  # type: ignore[attr-defined]
    assert len(to_failure(error).exception) < EXCEPTION_NBYTES_MAX
    arrived = travel(error)
    assert type(arrived) is ValueError
    assert str(arrived) == "small text"
    assert any("bytes that is too large" in note for note in arrived.__notes__)


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int


def test_an_exception_that_may_not_be_changed_arrives_whole() -> None:
    """Its own `__setattr__` is not asked."""
    arrived = travel(raised(Frozen(5)))
    assert arrived == Frozen(5)
    assert arrived.__traceback__ is not None


class NamelessKind(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(f"no {name}")


class Nameless(Exception, metaclass=NamelessKind):
    def __str__(self) -> str:
        return OddText("words")


class OddText(str):
    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")

    def __format__(self, spec: str) -> str:
        raise RuntimeError("no format")


def test_a_class_without_a_name_is_named_all_the_same() -> None:
    """By what Python itself calls it."""
    error = Nameless()
    assert text_of(error) == "Nameless: words"
    arrived = travel(raised(error))
    assert isinstance(arrived, RemoteError)
    assert str(arrived) == "Nameless: words"


def test_a_note_is_added_where_that_is_allowed() -> None:
    """And where it is not, nothing is raised."""
    error = ValueError()
    tell_unreadable(error, Key("x"))
    assert "unpickling the result of task 'x'" in error.__notes__[0]
    tell_unreadable(Frozen(1), Key("x"))


def recurse() -> None:
    recurse()


def test_endless_recursion_arrives_with_a_bounded_traceback() -> None:
    """A thousand frames, all alike."""
    try:
        recurse()
    except RecursionError as error:
        arrived = travel(error)
    assert isinstance(arrived, RecursionError)
    names = [frame.name for frame in traceback.extract_tb(arrived.__traceback__)]
    assert 50 < len(names) < 200
    assert "recurse" in names


def test_a_long_chain_of_causes_does_not_break_it() -> None:
    """Deeper than pickle can recurse."""
    error: BaseException = ValueError(0)
    for number in range(5000):
        outer = ValueError(number)
        outer.__cause__ = error
        error = outer
    arrived = travel(error)
    assert isinstance(arrived, ValueError | RemoteError)
    assert "4999" in str(arrived)


def test_text_that_utf8_can_not_express_arrives_escaped() -> None:
    """Names of files may hold such."""
    failure = to_failure(ValueError("\udc80"))
    assert failure.text == "ValueError: \\udc80"
    assert type(travel(ValueError("\udc80"))) is ValueError


@pytest.mark.parametrize("pickled", [b"", b"rubbish", b"\x80\x05K\x01."])
def test_what_can_not_be_loaded_here_is_raised_as_its_text(pickled: bytes) -> None:
    """Its class may be missing here."""
    arrived = from_failure(Failure(pickled, "ValueError: no", "Traceback ...\n"))
    assert isinstance(arrived, RemoteError)
    assert str(arrived) == "ValueError: no"
    assert arrived.__traceback__ is not None
    assert "Traceback ...\n" in arrived.__notes__


def test_each_call_gives_a_new_exception() -> None:
    """Raising one must not add to the traceback of another."""
    failure = to_failure(raised(ValueError(1)))
    assert from_failure(failure) is not from_failure(failure)
