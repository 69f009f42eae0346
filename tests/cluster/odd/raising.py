"""Tasks that raise what nobody should have to handle."""

import asyncio
import ctypes
import dataclasses
import os
import socket
import sys
import threading
import time
import types
from typing import Any, NoReturn

from shoal.protocol.exceptions import RemoteError
from tests.cluster.odd.case import raises


class OwnBase(BaseException):
    """Not even an Exception."""


@raises(OwnBase, "mine")
def base_exception() -> NoReturn:
    raise OwnBase("mine")


@raises(SystemExit, "5")
def system_exit() -> NoReturn:
    sys.exit(5)


@raises(KeyboardInterrupt)
def keyboard_interrupt() -> NoReturn:
    raise KeyboardInterrupt


@raises(GeneratorExit)
def generator_exit() -> NoReturn:
    raise GeneratorExit


@raises(asyncio.CancelledError)
def asyncio_cancelled() -> NoReturn:
    raise asyncio.CancelledError("by itself")


@raises(StopIteration, "7")
def stop_iteration() -> NoReturn:
    raise StopIteration(7)


@raises(StopAsyncIteration)
def stop_async_iteration() -> NoReturn:
    raise StopAsyncIteration


@raises(RecursionError)
def endless_recursion() -> Any:
    return endless_recursion()


@raises(MemoryError)
def out_of_memory() -> Any:
    return bytearray(1 << 62)


@raises(TimeoutError, "not the network's")
def an_error_like_the_networks() -> NoReturn:
    raise TimeoutError("not the network's")


class NeedsKeyword(Exception):
    def __init__(self, *, reason: str) -> None:
        super().__init__()
        self.reason = reason

    def __str__(self) -> str:
        return f"because {self.reason}"


@raises(NeedsKeyword, "because of a keyword")
def required_keyword() -> NoReturn:
    raise NeedsKeyword(reason="of a keyword")


class TwoIntoOne(Exception):
    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first}+{second}")


@raises(TwoIntoOne, r"1\+2")
def arguments_unlike_its_own() -> NoReturn:
    raise TwoIntoOne(1, 2)


class HoldsLock(Exception):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.lock = threading.Lock()
        self.code = 17


@raises(HoldsLock, r"locked(.|\n)*lock")
def exception_with_a_lock() -> NoReturn:
    raise HoldsLock("locked")


@raises(ValueError, r"frame")
def exception_with_a_frame() -> NoReturn:
    raise ValueError("framed", sys._getframe())


@raises(ConnectionError, "socket")
def exception_with_a_socket() -> NoReturn:
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours:
        raise ConnectionError("gone", ours)


class ReducesToTrouble(Exception):
    def __reduce__(self) -> Any:
        raise ValueError("no pickle of me")


@raises(ReducesToTrouble, "plain")
def exception_whose_reduce_raises() -> NoReturn:
    raise ReducesToTrouble("plain")


class ReducesForEver(Exception):
    def __reduce__(self) -> Any:
        return self.__reduce__()


@raises(ReducesForEver, "deep")
def exception_whose_reduce_recurses() -> NoReturn:
    raise ReducesForEver("deep")


def _explode(text: str) -> NoReturn:
    raise KeyError("as it was loaded")


class Explodes(Exception):
    def __reduce__(self) -> Any:
        return _explode, self.args


@raises(Explodes, "pickled well")
def exception_that_does_not_unpickle() -> NoReturn:
    raise Explodes("pickled well")


def _elsewhere(pid: int) -> Exception:
    if os.getpid() != pid:
        raise KeyError("not in this process")
    return OnlyAtHome(pid)


class OnlyAtHome(Exception):
    def __reduce__(self) -> Any:
        return _elsewhere, self.args


@raises(RemoteError, "OnlyAtHome: [0-9]+(.|\n)*not in this process")
def exception_that_unpickles_only_at_home() -> NoReturn:
    raise OnlyAtHome(os.getpid())


class BecomesText(Exception):
    def __reduce__(self) -> Any:
        return str, self.args


@raises(BecomesText, "text after all")
def exception_that_unpickles_as_something_else() -> NoReturn:
    raise BecomesText("text after all")


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


@raises(RuntimeError, "a mute was raised")
def cause_whose_text_raises() -> NoReturn:
    raise RuntimeError("a mute was raised") from Mute("quiet")


class IsFalse(Exception):
    def __bool__(self) -> bool:
        return False


@raises(IsFalse, "not true")
def exception_that_is_false() -> NoReturn:
    raise IsFalse("not true")


class RefusesToCompare(Exception):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no comparing")

    __hash__ = Exception.__hash__

    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")


@raises(RefusesToCompare, "incomparable")
def exception_that_refuses_to_compare() -> NoReturn:
    raise RefusesToCompare("incomparable")


@dataclasses.dataclass(frozen=True)
class Frozen(Exception):
    code: int


@raises(Frozen)
def frozen_dataclass() -> NoReturn:
    raise Frozen(5)


@raises(RemoteError, r"OnlyHere: of that module(.|\n)*No module named")
def exception_of_a_module_that_only_its_worker_has() -> NoReturn:
    module = types.ModuleType("module_of_one_worker_for_errors")
    exec("class OnlyHere(Exception): pass", vars(module))
    sys.modules[module.__name__] = module
    raise module.OnlyHere("of that module")


class SlowToSay(Exception):
    def __str__(self) -> str:
        time.sleep(0.2)
        return "at last"

    __repr__ = __str__


@raises(SlowToSay, "at last")
def exception_whose_text_is_slow() -> NoReturn:
    raise SlowToSay


class OddText(str):
    def __bool__(self) -> bool:
        raise RuntimeError("neither true nor false")

    def __format__(self, spec: str) -> str:
        raise RuntimeError("no format")

    def __len__(self) -> int:
        raise RuntimeError("no length")


class SaysOddText(Exception):
    def __str__(self) -> str:
        return OddText("odd text")


@raises(SaysOddText, "odd text")
def exception_whose_text_is_odd() -> NoReturn:
    raise SaysOddText


@raises(ValueError, "characters cut")
def huge_message() -> NoReturn:
    raise ValueError("x" * 50_000_000)


@raises(ValueError, r"small(.|\n)*bytearray")
def huge_argument() -> NoReturn:
    raise ValueError("small", bytearray(5_000_000))


@raises(ValueError, "surrogate \udc80")
def text_that_utf8_does_not_know() -> NoReturn:
    raise ValueError("surrogate \udc80")


@raises(ValueError, "round")
def circle_of_causes() -> NoReturn:
    first, second = ValueError("round"), KeyError("and round")
    first.__cause__, second.__cause__ = second, first
    raise first


@raises(ValueError, "2999")
def endless_chain_of_causes() -> NoReturn:
    error: BaseException = ValueError("0")
    for number in range(1, 3000):
        outer = ValueError(str(number))
        outer.__cause__ = error
        error = outer
    raise error


@raises(BaseExceptionGroup, r"both \(2 sub-exceptions\)")
def exception_group() -> NoReturn:
    raise BaseExceptionGroup("both", [ValueError(1), SystemExit(2)])


def _nested(depth: int) -> Exception:
    group: Exception = ValueError("core")
    for _ in range(depth):
        group = ExceptionGroup("deep", [group])
    return group


@raises(ExceptionGroup, "deep")
def nested_exception_groups() -> NoReturn:
    raise _nested(50)


@raises(RemoteError, "ExceptionGroup: deep")
def exception_groups_nested_deeper_than_pickle_goes() -> NoReturn:
    raise _nested(2_000)


@raises(ValueError, "note well")
def notes() -> NoReturn:
    error = ValueError("noted")
    error.add_note("note well")
    raise error


@raises(ValueError, "bad notes")
def notes_that_are_none() -> NoReturn:
    error = ValueError("bad notes")
    error.__notes__ = 5  # type: ignore[assignment]
    raise error


class OddMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__name__", "__qualname__", "__module__"):
            raise RuntimeError("a class without a name")
        return super().__getattribute__(name)

    def __instancecheck__(cls, instance: object) -> bool:
        raise RuntimeError("no instances")

    def __eq__(cls, other: object) -> bool:
        raise RuntimeError("no comparing")

    __hash__ = type.__hash__


class OddlyMade(Exception, metaclass=OddMeta):
    pass


@raises(RemoteError, "OddlyMade: what a class")
def exception_of_an_odd_metaclass() -> NoReturn:
    raise OddlyMade("what a class")


class HidesTraceback(Exception):
    @property
    def __traceback__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no traceback")

    @property
    def args(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no arguments")

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no attributes")

    def __str__(self) -> str:
        return "hidden"


@raises(RemoteError, "HidesTraceback: hidden")
def exception_that_hides_itself() -> NoReturn:
    raise HidesTraceback


class RefusesAttributes(Exception):
    def __getattribute__(self, name: str) -> Any:
        raise SystemExit(f"asked for {name}")

    def __setattr__(self, name: str, value: object) -> None:
        raise SystemExit(f"told {name}")


@raises(RuntimeError, "refused")
def cause_that_refuses_attributes() -> NoReturn:
    raise RuntimeError("refused") from RefusesAttributes()


def _of_main(code: str) -> Any:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(code, names)
    return names["Made"]


@raises("Made", "in main")
def exception_class_of_main() -> NoReturn:
    raise _of_main("class Made(ValueError): pass")("in main")


@raises("Local", "here only")
def exception_class_of_the_task() -> NoReturn:
    class Local(Exception):
        pass

    raise Local("here only")


@raises(ZeroDivisionError, "division")
def raise_within_a_callback_of_c() -> Any:
    return sorted([1, 2], key=lambda item: item / 0)


@raises(ctypes.ArgumentError)
def foreign_call_with_the_wrong_argument() -> Any:
    return ctypes.CDLL(None).strlen(object())
