"""Work whose result is known beforehand, for clusters in which things go wrong meanwhile."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from itertools import count, cycle
from typing import Any

import numpy as np

from shoal import Client
from shoal.client.dask_settings import drop_in_is_ours

NNUMBERS = 48
NBYTES = 5_000
"""Of each result: too large to travel with messages."""
STEP_SECONDS = 0.02
LONG_SECONDS = 1.5
NLONG = 6
NROWS = 2_000
NPARTS = 8


class Play:
    """One round, and when something was last seen to come to its end in it."""

    def __init__(self, client: Client, seconds_max: float) -> None:
        """`seconds_max`: for the round."""
        self.client, self.seconds_max = client, seconds_max
        self.longest_pause_seconds = 0.0
        self._last_at = time.monotonic()

    def watch(self, futures: Iterable[Any]) -> None:
        """Each end of one of these is something that happens."""
        for future in futures:
            future.add_done_callback(self.beat)

    def beat(self, future: object = None) -> None:
        """Something has happened."""
        now = time.monotonic()
        self.longest_pause_seconds = max(self.longest_pause_seconds, now - self._last_at)
        self._last_at = now


Round = Callable[[Play], str]
"""Does a piece of work; what is wrong with the result, or nothing."""


def number(n: int) -> bytes:
    """One leaf of a tree."""
    time.sleep(STEP_SECONDS)
    return n.to_bytes(8, "big") + bytes(NBYTES)


def added(left: bytes, right: bytes) -> bytes:
    """Of two, the sum."""
    time.sleep(STEP_SECONDS)
    total = int.from_bytes(left[:8], "big") + int.from_bytes(right[:8], "big")
    return total.to_bytes(8, "big") + bytes(NBYTES)


def tree(play: Play) -> str:
    """A sum in a tree of small steps, all of which have to be fetched."""
    level = [play.client.submit(number, n, pure=False) for n in range(NNUMBERS)]
    while len(level) > 1:
        play.watch(level)
        rest = level[len(level) // 2 * 2 :]
        pairs = zip(level[::2], level[1::2], strict=False)
        level = [play.client.submit(added, a, b, pure=False) for a, b in pairs] + rest
    found = int.from_bytes(level[0].result(timeout=play.seconds_max)[:8], "big")
    expected = sum(range(NNUMBERS))
    return "" if found == expected else f"the sum is {found}, not {expected}"


def slow_square(n: int) -> int:
    """Takes so long that it is often interrupted."""
    time.sleep(LONG_SECONDS)
    return n * n


def long_tasks(play: Play) -> str:
    """Few, each of which takes longer than workers live."""
    squares = play.client.map(slow_square, range(NLONG), pure=False)
    play.watch(squares)
    found = play.client.submit(sum, squares, pure=False).result(timeout=play.seconds_max)
    expected = sum(n * n for n in range(NLONG))
    return "" if found == expected else f"the sum is {found}, not {expected}"


def rows(part: int) -> Any:
    """One partition of a table."""
    import pandas as pd

    numbers = np.arange(part * NROWS, (part + 1) * NROWS)
    return pd.DataFrame({"k": numbers * 7919 % 101, "row": numbers})


def shuffle(play: Play) -> str:
    """An exchange of all with all, of which every row has to arrive once."""
    import dask
    import dask.dataframe as dd

    with dask.config.set({"dataframe.shuffle.method": "p2p"}):
        table = dd.from_map(rows, range(NPARTS), meta=rows(0).iloc[:0]).shuffle("k")
    found = play.client.compute(table).result(timeout=play.seconds_max)
    if sorted(found.row) != list(range(NPARTS * NROWS)):
        return f"of {NPARTS * NROWS} rows, {found.row.nunique()} of {len(found)} are different"
    return "" if (found.k == found.row * 7919 % 101).all() else "rows are torn"


def rounds() -> Iterator[tuple[str, Round]]:
    """All kinds in turn, for ever."""
    kinds: list[Round] = [tree, long_tasks]
    if drop_in_is_ours() and find_spec("pandas") and find_spec("pyarrow"):
        kinds.insert(1, shuffle)
    for index, kind in zip(count(1), cycle(kinds), strict=False):
        yield f"{kind.__name__} {index}", kind


def outcome(kind: Round, play: Play) -> str:
    """What is wrong with a round, or nothing; errors, and hangs, are wrong as well."""
    try:
        return kind(play)
    except TimeoutError:
        return f"not over after {play.seconds_max:g} s"
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:300]}"
    finally:
        play.beat()
