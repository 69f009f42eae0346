"""`distributed.utils_comm`: results fetched from workers by name, from wherever they are."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Collection, Mapping
from typing import Any


async def gather_from_workers(
    who_has: Mapping[Any, Collection[str]],
    rpc: Any,
    *,
    serializers: Any = None,
    who: str | None = None,
) -> tuple[dict[Any, Any], list[Any], list[Any], list[str]]:
    """Fetch results; each of its holders is asked until one has it.

    Args:
        who_has: key -> addresses of workers.
        rpc: a ConnectionPool.
        serializers, who: not used.

    Returns:
        Key -> value; keys that no holder had; keys that could not be serialised or read; workers
        that could not be reached.
    """
    found: dict[Any, Any] = {}
    failed: list[Any] = []
    bad_workers: list[str] = []
    left = {key: random.sample(list(holders), len(holders)) for key, holders in who_has.items()}
    while True:
        asked: dict[str, list[Any]] = {}
        for key, holders in left.items():
            while holders and holders[-1] in bad_workers:
                holders.pop()
            if holders:
                asked.setdefault(holders.pop(), []).append(key)
        if not asked:
            break
        answers = await asyncio.gather(
            *(rpc(worker).get_data(keys=keys) for worker, keys in asked.items()),
            return_exceptions=True,
        )
        for (worker, keys), answer in zip(asked.items(), answers, strict=True):
            if isinstance(answer, OSError):
                bad_workers.append(worker)
            elif isinstance(answer, Exception):  # it can't be written there, or read here
                failed += keys
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found.update(answer["data"])
        for key in [*found, *failed]:
            left.pop(key, None)
    return found, list(left), failed, bad_workers
