"""Tasks that return what is hard to measure, to send, or only to look at."""

import array
import asyncio
import ctypes
import io
import os
import sys
import threading
import time
from typing import Any, NoReturn

import dask
import numpy as np

from shoal import Future, get_client
from shoal.worker.shell.errors import UnpicklableResult
from tests.cluster.odd.case import gives, raises, stays


class OwnBase(BaseException):
    """Not even an Exception."""


# --- what can't be measured ------------------------------------------------------------------


class Sized:
    def __init__(self, size: Any) -> None:
        self.size = size

    def __sizeof__(self) -> int:
        if callable(self.size):
            return self.size()  # type: ignore[no-any-return]
        return self.size  # type: ignore[no-any-return]


def is_sized(value: Any) -> bool:
    return type(value) is Sized


@gives(is_sized)
def negative_size() -> Any:
    return Sized(-5)


@gives(is_sized)
def huge_size() -> Any:
    return Sized(2**200)


@gives(is_sized)
def size_that_is_a_text() -> Any:
    return Sized("large")


@gives(is_sized)
def size_that_is_not_a_number() -> Any:
    return Sized(float("nan"))


@gives(is_sized)
def terabyte_that_is_none() -> Any:
    return Sized(2**40)


def _fail() -> NoReturn:
    raise ValueError("not to be measured")


@gives(is_sized)
def size_that_raises() -> Any:
    return Sized(_fail)


@gives(is_sized)
def size_that_exits() -> Any:
    return Sized(sys.exit)


def _own_base() -> NoReturn:
    raise OwnBase("while measured")


@gives(is_sized)
def size_that_raises_a_base_exception() -> Any:
    return Sized(_own_base)


def _slow() -> int:
    time.sleep(0.3)
    return 100


@gives(is_sized)
def size_that_is_slow() -> Any:
    return Sized(_slow)


# --- buffers ---------------------------------------------------------------------------------


@gives(lambda value: bytes(value) == b"x" * 100_000)
def memoryview_of_readonly_memory() -> Any:
    return memoryview(b"x" * 100_000)


@gives(lambda value: bytes(value) == bytes(range(0, 250, 2)) * 400)
def memoryview_with_gaps() -> Any:
    return memoryview(bytes(range(250)) * 400)[::2]


@gives(lambda value: bytes(value) == b"")
def empty_memoryview() -> Any:
    return memoryview(b"")


@gives(lambda value: bytes(value) == bytes(60_000))
def memoryview_of_three_dimensions() -> Any:
    return memoryview(bytearray(60_000)).cast("B", (30, 40, 50))


@gives(lambda value: value == array.array("d", range(50_000)))
def array_of_the_standard_library() -> Any:
    return array.array("d", range(50_000))


@stays(lambda value: list(value) == list(range(20_000)), AttributeError, "unpickling")
def ctypes_array() -> Any:
    return (ctypes.c_int * 20_000)(*range(20_000))


@gives(lambda value: value.flags.f_contiguous and value[3, 4] == 304)
def fortran_order() -> Any:
    return np.asfortranarray(np.arange(100_000).reshape(1000, 100))


@gives(lambda value: value.shape == () and value[()] == 5)
def array_without_dimensions() -> Any:
    return np.array(5)


@gives(lambda value: value.shape == (0, 100_000))
def array_without_items() -> Any:
    return np.empty((0, 100_000))


@gives(lambda value: value.tolist() == list(range(0, 100_000, 7)))
def array_with_gaps() -> Any:
    return np.arange(100_000)[::7]


@gives(lambda value: not value.flags.writeable and value.sum() == 100_000)
def readonly_array() -> Any:
    ones = np.ones(100_000)
    ones.flags.writeable = False
    return ones


@gives(lambda value: value["b"][9_999] == 2.5 and value.dtype.names == ("a", "b"))
def structured_array() -> Any:
    return np.array([(1, 2.5)] * 10_000, dtype=[("a", "i4"), ("b", "f8")])


@gives(lambda value: value[2] == {"a": 1} and value.dtype == object)
def array_of_objects() -> Any:
    return np.array([1, "two", {"a": 1}, None] * 5_000, dtype=object)


@stays(lambda value: value.shape == (1,), UnpicklableResult, "ndarray.*lock")
def array_of_locks() -> Any:
    return np.array([threading.Lock()], dtype=object)


class Tagged(np.ndarray):
    pass


@gives(lambda value: type(value) is Tagged and value.sum() == 50_000)
def subclass_of_array() -> Any:
    return np.ones(50_000).view(Tagged)


@gives(lambda value: value.mask.sum() == 10_000 and value.sum() == 10_000)
def masked_array() -> Any:
    return np.ma.masked_array(np.ones(20_000), mask=np.arange(20_000) % 2)


@gives(lambda value: value.nbytes == 200_000_000 and value[-1] == 7, once=True)
def two_hundred_megabytes() -> Any:
    return np.full(200_000_000, 7, dtype="u1")


@gives(lambda value: len(value) == 1_500 and value[-1].sum() == 20_000)
def more_buffers_than_a_frame_takes() -> Any:
    return [np.ones(20_000, dtype="u1") for _ in range(1_500)]


@gives(lambda value: value.read() == b"in memory")
def file_in_memory() -> Any:
    return io.BytesIO(b"in memory")


@gives(lambda value: value.read() == "")
def file_open_for_reading() -> Any:
    return open(os.devnull)


# --- what looks odd to whoever touches it ----------------------------------------------------


class Touchy:
    def _refuse(self, *_: object) -> NoReturn:
        raise RuntimeError("don't touch")

    __eq__ = __bool__ = __len__ = __iter__ = __repr__ = __str__ = __format__ = _refuse  # type: ignore[assignment]
    __hash__ = _refuse  # type: ignore[assignment]

    def __getattr__(self, name: str) -> NoReturn:
        raise RuntimeError(f"don't ask for {name}")


@gives(lambda value: type(value) is Touchy)
def object_that_raises_when_touched() -> Any:
    return Touchy()


class OddMeta(type):
    def __getattribute__(cls, name: str) -> Any:
        if name in ("__name__", "__qualname__", "__module__"):
            raise RuntimeError("a class without a name")
        return super().__getattribute__(name)

    def __bool__(cls) -> bool:
        raise RuntimeError("neither true nor false")


class OddlyMade(metaclass=OddMeta):
    pass


@stays(lambda value: type(value) is OddlyMade, RuntimeError, "without a name(.|\n)*OddlyMade")
def object_of_an_odd_metaclass() -> Any:
    return OddlyMade()


@gives(lambda value: value is NotImplemented)
def not_implemented() -> Any:
    return NotImplemented


@gives(lambda value: value is Ellipsis)
def ellipsis() -> Any:
    return ...


@gives(lambda value: value is None)
def nothing() -> Any:
    return None


@gives(lambda value: type(value) is ValueError and value.args == ("returned",))
def an_exception() -> Any:
    return ValueError("returned")


@gives(lambda value: value is os)
def module() -> Any:
    return os


@gives(lambda value: value().x == 5)
def class_of_the_task() -> Any:
    class Local:
        x = 5

    return Local


@gives(lambda value: value.x == 6)
def instance_of_a_class_of_the_task() -> Any:
    class Local:
        def __init__(self) -> None:
            self.x = 6

    return Local()


@gives(lambda value: value.x == 7)
def instance_of_a_class_of_main() -> Any:
    names: dict[str, Any] = {"__name__": "__main__"}
    exec("class Made:\n    x = 7", names)
    return names["Made"]()


class OddText(str):
    pass


@gives(lambda value: value == "\udc80 text" and type(value) is OddText)
def text_of_a_subclass_that_utf8_does_not_know() -> Any:
    return OddText("\udc80 text")


@gives(lambda value: value == 1 << 100_000)
def number_of_100_000_bits() -> Any:
    return 1 << 100_000


@gives(lambda value: value[0] is value)
def list_that_holds_itself() -> Any:
    circle: list[Any] = []
    circle.append(circle)
    return circle


_times_pickled = 0


class Once:
    def __reduce__(self) -> Any:
        global _times_pickled  # noqa: PLW0603 -- one worker counts for itself
        _times_pickled += 1
        if _times_pickled > 1:
            raise RuntimeError("pickled twice")
        return Once, ()


@gives(lambda value: type(value) is Once)
def picklable_only_once() -> Any:
    global _times_pickled  # noqa: PLW0603 -- a new value
    _times_pickled = 0
    return Once()


async def _five() -> int:
    await asyncio.sleep(0)
    return 5


@gives(lambda value: value == 5)
def coroutine() -> Any:
    return _five()


@raises(KeyError, "awaited")
def coroutine_that_raises() -> Any:
    async def fail() -> NoReturn:
        await asyncio.sleep(0)
        raise KeyError("awaited")

    return fail()


@raises(SystemExit, "6")
def coroutine_that_exits() -> Any:
    async def leave() -> NoReturn:
        sys.exit(6)

    return leave()


@raises(asyncio.CancelledError)
def coroutine_that_cancels_itself() -> Any:
    async def cancel() -> NoReturn:
        raise asyncio.CancelledError("myself")

    return cancel()


class Awaitable:
    def __init__(self) -> None:
        self.coroutine = _five()
        self.coroutine.close()

    def __await__(self) -> Any:
        return self.coroutine.__await__()


@stays(lambda value: type(value) is Awaitable, UnpicklableResult, "Awaitable.*coroutine")
def awaitable_around_a_coroutine() -> Any:
    return Awaitable()


@gives(lambda value: type(value) is Future and value.key == "key-inside")
def future() -> Any:
    return get_client().submit(_slow, key="key-inside")


@gives(lambda value: value.compute(scheduler="sync") == 3)
def dask_collection() -> Any:
    return dask.delayed(sum)([1, 2])
