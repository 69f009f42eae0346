"""Tasks whose result is of use on their worker, and can't leave it or be read elsewhere."""

import mmap
import os
import socket
import sys
import threading
import time
import types
import weakref
from typing import Any, NoReturn

from shoal.worker.shell.errors import UnpicklableResult
from tests.cluster.odd.case import gives, stays

# --- what can't leave the worker -------------------------------------------------------------


@stays(callable, UnpicklableResult, "function.*lock")
def function_around_a_lock() -> Any:
    lock = threading.Lock()
    return lambda: lock


@stays(lambda value: list(value) == [0, 1, 2], UnpicklableResult, "of type generator")
def generator() -> Any:
    return (number for number in range(3))


@stays(lambda value: value.closed is False, UnpicklableResult, "TextIOWrapper")
def file_open_for_writing() -> Any:
    return open(os.devnull, "w")


@stays(lambda value: value.fileno() >= 0, UnpicklableResult, "socket")
def open_socket() -> Any:
    return socket.socket()


@stays(lambda value: value.acquire(blocking=False), UnpicklableResult, "_thread.lock")
def lock() -> Any:
    return threading.Lock()


@stays(lambda value: value is threading.current_thread(), UnpicklableResult, "Thread")
def its_own_thread() -> Any:
    return threading.current_thread()


@stays(lambda value: value() is os, UnpicklableResult, "weakref")
def weak_reference() -> Any:
    return weakref.ref(os)


@stays(lambda value: value[:5] == b"hello", UnpicklableResult, "mmap")
def mapped_memory() -> Any:
    mapped = mmap.mmap(-1, 100_000)
    mapped.write(b"hello")
    return mapped


@stays(lambda value: value.f_code.co_name == "frame", UnpicklableResult, "frame")
def frame() -> Any:
    return sys._getframe()


class ReducesToTrouble:
    def __reduce__(self) -> Any:
        raise LookupError("no pickle of me")


@stays(
    lambda value: type(value) is ReducesToTrouble,
    LookupError,
    r"no pickle of me(.|\n)*task.*ReducesToTrouble",
)
def reduce_that_raises() -> Any:
    return ReducesToTrouble()


class ReducesToExit:
    def __reduce__(self) -> Any:
        raise SystemExit(9)


@stays(lambda value: type(value) is ReducesToExit, SystemExit, "9")
def reduce_that_exits() -> Any:
    return ReducesToExit()


class OwnBase(BaseException):
    """Not even an Exception."""


class ReducesToBase:
    def __reduce__(self) -> Any:
        raise OwnBase("out of reduce")


@stays(lambda value: type(value) is ReducesToBase, OwnBase, "out of reduce")
def reduce_that_raises_a_base_exception() -> Any:
    return ReducesToBase()


class ReducesToNonsense:
    def __reduce__(self) -> Any:
        return 5, 6, 7, 8, 9, 10, 11


@stays(lambda value: type(value) is ReducesToNonsense, UnpicklableResult, "tuple")
def reduce_that_returns_nonsense() -> Any:
    return ReducesToNonsense()


class ReducesSlowly:
    def __init__(self) -> None:
        self.cargo = "x" * 50_000

    def __reduce__(self) -> Any:
        time.sleep(0.2)
        return ReducesSlowly, ()


@gives(lambda value: type(value) is ReducesSlowly)
def reduce_that_is_slow() -> Any:
    return ReducesSlowly()


@stays(lambda value: hasattr(value, "__anext__"), UnpicklableResult, "async_generator")
def asynchronous_generator() -> Any:
    async def count() -> Any:
        yield 1

    return count()


class ReducesForEver:
    def __reduce__(self) -> Any:
        return self.__reduce__()


@stays(lambda value: type(value) is ReducesForEver, UnpicklableResult, "recursion")
def reduce_that_recurses() -> Any:
    return ReducesForEver()


def deep_list(depth: int) -> Any:
    nested: list[Any] = []
    for _ in range(depth):
        nested = [nested]
    return nested


@stays(lambda value: len(value) == 1, UnpicklableResult, "list.*recursion")
def list_nested_100_000_deep() -> Any:
    return deep_list(100_000)


# --- what leaves, and can't be read ----------------------------------------------------------


class RefusesState:
    def __init__(self, size: int = 1) -> None:
        self.state = "x" * size

    def __setstate__(self, state: object) -> NoReturn:
        raise LookupError("no such state")


@stays(lambda value: value.state == "x", LookupError, r"no such state")
def setstate_that_raises() -> Any:
    return RefusesState()


@stays(lambda value: len(value.state) == 50_000, LookupError, r"no such state")
def setstate_of_something_larger_that_raises() -> Any:
    return RefusesState(50_000)


@stays(lambda value: len(value.state) == 3_000_000, LookupError, r"no such state")
def setstate_of_something_large_that_raises() -> Any:
    return RefusesState(3_000_000)


class ExitsWhenRead:
    def __reduce__(self) -> Any:
        return sys.exit, (4,)


@stays(lambda value: type(value) is ExitsWhenRead, SystemExit, r"4")
def value_that_exits_when_read() -> Any:
    return ExitsWhenRead()


def _stop(number: int) -> NoReturn:
    raise StopIteration(number)


class StopsWhenRead:
    def __reduce__(self) -> Any:
        return _stop, (3,)


@stays(lambda value: type(value) is StopsWhenRead, StopIteration, r"3")
def value_that_stops_an_iteration_when_read() -> Any:
    return StopsWhenRead()


def _at_home(pid: int) -> Any:
    if os.getpid() != pid:
        raise LookupError("not in this process")
    return AtHome()


class AtHome:
    def __reduce__(self) -> Any:
        return _at_home, (os.getpid(),)


@stays(lambda value: type(value) is AtHome, LookupError, r"not in this process")
def value_that_reads_only_where_it_was_made() -> Any:
    return AtHome()


@stays(
    lambda value: type(value).__name__ == "OnlyHere",
    ModuleNotFoundError,
    r"unpickling(.|\n)*packages are installed",
)
def value_of_a_module_that_only_its_worker_has() -> Any:
    module = types.ModuleType("module_of_one_worker")
    exec("class OnlyHere: pass", vars(module))
    sys.modules[module.__name__] = module
    return module.OnlyHere()
