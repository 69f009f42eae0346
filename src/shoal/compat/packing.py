"""`distributed.utils_comm`: keys in nested values, put in and taken out; calls tried again."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final, TypeVar

import dask.config
from dask._task_spec import TaskRef
from dask.utils import parse_timedelta

T = TypeVar("T")

WrappedKey = TaskRef

_COLLECTIONS: Final = (list, set, frozenset)

_logger = logging.getLogger("shoal.utils_comm")
_CHARACTERS_MAX: Final = 200


def pack_data(o: Any, d: Mapping[Any, Any], key_types: Any = object) -> Any:
    """`o` with what `d` has in the place of its keys: in tuples, lists, sets and dicts' values.

    Args:
        key_types: what a key may be.
    """
    try:
        if isinstance(o, key_types) and o in d:
            return d[o]
    except TypeError:
        pass  # it can't be a key: it can't be hashed
    if type(o) is tuple:
        return tuple(pack_data(each, d, key_types) for each in o)
    if type(o) in _COLLECTIONS:
        return type(o)(pack_data(each, d, key_types) for each in o)
    if type(o) is dict:
        return {key: pack_data(value, d, key_types) for key, value in o.items()}
    return o


def subs_multiple(o: Any, d: Mapping[Any, Any]) -> Any:
    """As `pack_data`, but of a tuple only if it is a task: its function is left as it is."""
    if type(o) is tuple and o and callable(o[0]):
        return (o[0], *(subs_multiple(each, d) for each in o[1:]))
    if type(o) is list:
        return [subs_multiple(each, d) for each in o]
    if type(o) is dict:
        return {key: subs_multiple(value, d) for key, value in o.items()}
    try:
        return d.get(o, o)
    except TypeError:
        return o  # it can't be a key


def unpack_remotedata(o: Any, byte_keys: bool = False) -> tuple[Any, set[TaskRef]]:
    """`o` with the keys of its references in their place, and the set of those.

    Args:
        byte_keys: write the keys as texts.
    """
    found: set[TaskRef] = set()
    return _unpacked(o, byte_keys, found), found


def _unpacked(o: Any, as_texts: bool, found: set[TaskRef]) -> Any:
    if isinstance(o, TaskRef):
        key = str(o.key) if as_texts else o.key
        found.add(TaskRef(key) if as_texts else o)
        return key
    if type(o) in (tuple, *_COLLECTIONS):
        return type(o)(_unpacked(each, as_texts, found) for each in o)
    if type(o) is dict:
        return {key: _unpacked(value, as_texts, found) for key, value in o.items()}
    return o


async def retry(
    coro: Callable[[], Coroutine[Any, Any, T]],
    count: int,
    delay_min: float,
    delay_max: float,
    jitter_fraction: float = 0.1,
    retry_on_exceptions: type[BaseException] | tuple[type[BaseException], ...] = (OSError,),
    operation: str | None = None,
) -> T:
    """Await `coro()`, again and again if it fails: `count` times after the first.

    Args:
        delay_min: after the first failure it is tried at once, then after this many seconds, then
            after three times as many, seven times and so on.
        delay_max: seconds that no pause exceeds.
        jitter_fraction: how much longer a pause may be, by chance, so that not all come at once.
        operation: what the log calls it.
    """
    what = operation or _short(coro)
    for nfailures in range(count):
        try:
            return await coro()
        except retry_on_exceptions as error:
            seconds = min(delay_min * (2**nfailures - 1), delay_max)
            if jitter_fraction > 0:
                seconds *= 1 + random.random() * jitter_fraction
            _logger.info("%s failed (%r); it is tried again in %.3g s", what, error, seconds)
            await asyncio.sleep(seconds)
    return await coro()


def _short(coro: object) -> str:
    """What the log calls it."""
    text = repr(coro)
    return text if len(text) <= _CHARACTERS_MAX else f"{text[: _CHARACTERS_MAX - 3]}..."


async def retry_operation(
    coro: Callable[..., Coroutine[Any, Any, T]],
    *args: object,
    operation: str | None = None,
    **kwargs: object,
) -> T:
    """As `retry`, as often as the settings `distributed.comm.retry` want it."""
    setting = partial(dask.config.get, default=0)
    return await retry(
        partial(coro, *args, **kwargs),
        count=int(setting("distributed.comm.retry.count")),
        delay_min=parse_timedelta(setting("distributed.comm.retry.delay.min"), default="s"),
        delay_max=parse_timedelta(setting("distributed.comm.retry.delay.max"), default="s"),
        operation=operation,
    )
