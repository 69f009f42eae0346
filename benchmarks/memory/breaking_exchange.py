"""Exchanges of all with all in which a worker dies, stops for a while or for ever, or has no disk.

Each has to end with every row in its place, or with an error that says what happened; and in time.
"""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from threading import Timer
from typing import TYPE_CHECKING, Any

from benchmarks.memory.exchanging import merged, rechunked, shuffled
from benchmarks.memory.spilling import refuse_space

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

NWORKERS = 3
SECONDS_MAX = 120.0
BACK_SECONDS_MAX = 60.0
LOOK_SECONDS = 0.1
TTL_SECONDS = 10.0
"""After so long a worker that says nothing is lost, where one stops for ever."""

PROGRAMS = {"shuffle": shuffled, "merge": merged, "rechunk": rechunked}
NAMED = frozenset({"P2POutOfDiskError", "P2PConsistencyError", "KilledWorker"})
ENDS = ("right", "wrong", "named", "failed", "hung")


def breaking(
    ground: Ground,
    faults: list[str],
    nrounds: int,
    nbytes: int,
    limit_bytes: int,
    part_bytes: int = 8 << 20,
    threads: int = 1,
    seed: int = 0,
    freeze_seconds: float = 8.0,
) -> Found:
    """How many exchanges of each kind of fault ended how; rounds take kinds of exchange in turn.

    Args:
        faults: "kill" (of a worker at any moment), "freeze" (for a while, about the barrier),
            "stop" (for ever), "full" (the disk of one worker), "full everywhere".
        nrounds: of each fault.
    """
    import dask

    chance = random.Random(seed)
    counts = {fault: dict.fromkeys(ENDS, 0) for fault in faults}
    seconds: dict[str, list[float]] = {fault: [] for fault in faults}
    errors: list[str] = []
    settings = {
        "dataframe.shuffle.method": "p2p",
        "array.rechunk.method": "p2p",
        "distributed.scheduler.worker-ttl": f"{TTL_SECONDS} s" if "stop" in faults else "300 s",
    }
    with (
        dask.config.set(settings),
        ground.client(NWORKERS, threads, limit_bytes) as client,
    ):
        usual = {}
        for kind in [*PROGRAMS, *PROGRAMS]:  # the first time, it is imports that take longest
            _, usual[kind], why = _computed(client, PROGRAMS[kind](nbytes, part_bytes, seed, 0.0))
            errors += [why] if why else []
        yield {"usual": usual}
        for fault in faults:
            for number in range(nrounds):
                kind = list(PROGRAMS)[number % len(PROGRAMS)]
                fault_of = _Fault(client, fault, chance, usual[kind], freeze_seconds)
                asked = PROGRAMS[kind](nbytes, part_bytes, seed + 1 + number, 0.0)
                with fault_of:
                    ended, took, why = _computed(client, asked)
                counts[fault][ended] += 1
                seconds[fault].append(round(took, 1))
                if why:
                    errors.append(f"{fault}, {kind}: {why}")
                client.wait_for_workers(NWORKERS, timeout=BACK_SECONDS_MAX)
        yield {"counts": counts, "seconds": seconds, "errors": errors}


def _computed(client: Any, asked: tuple[Any, Callable[[Any], Any]]) -> tuple[str, float, str]:
    """How it ended, after how long, and with which error."""
    from concurrent.futures import TimeoutError as Timeout

    collection, is_right = asked
    started_at = time.monotonic()
    future = client.compute(collection)
    why = ""
    try:
        found = future.result(timeout=SECONDS_MAX)
        ended = "right" if is_right(found) else "wrong"
    except (TimeoutError, Timeout) as error:
        is_over = future.status == "error"
        ended, why = ("failed", repr(error)[:300]) if is_over else ("hung", "not over in time")
    except Exception as error:
        name = type(error).__name__
        ended = "named" if name in NAMED else "failed"
        why = f"{name}: {str(error)[:300]}"
    future.cancel()
    return ended, time.monotonic() - started_at, why


class _Fault:
    """What happens to a worker while the block lasts; afterwards nothing of it is left."""

    def __init__(
        self, client: Any, fault: str, chance: random.Random, usual: float, freeze_seconds: float
    ) -> None:
        """`usual`: seconds that an exchange takes."""
        self._client = client
        self._fault = fault
        pids = sorted(client.run(os.getpid).items())
        self._address, self._pid = chance.choice(pids)
        self._timers: list[Timer] = []
        self._has_struck = False
        if fault == "kill":
            self._at(chance.uniform(0.05, 1.0) * usual, signal.SIGKILL)
        elif fault == "stop":
            self._at(chance.uniform(0.05, 1.0) * usual, signal.SIGSTOP)
        elif fault == "freeze":
            begins = chance.uniform(0.3, 0.7) * usual
            self._at(begins, signal.SIGSTOP)
            self._at(begins + freeze_seconds, signal.SIGCONT)

    def _at(self, seconds: float, number: int) -> None:
        self._timers.append(Timer(seconds, self._send, (number,)))

    def _send(self, number: int) -> None:
        self._has_struck = True
        with suppress(ProcessLookupError):
            os.kill(self._pid, number)

    def _wait_until_gone(self) -> None:
        """Another takes its place, by another address."""
        ends_at = time.monotonic() + BACK_SECONDS_MAX
        while self._address in self._client.scheduler_info()["workers"]:
            if time.monotonic() > ends_at:
                raise RuntimeError(f"{self._address} was ended, and is still a worker")
            time.sleep(LOOK_SECONDS)

    def __enter__(self) -> None:
        if self._fault.startswith("full"):
            self._refuse(is_full=True)
        for timer in self._timers:
            timer.start()

    def __exit__(self, *exception: object) -> None:
        for timer in self._timers:
            if self._fault == "freeze":
                timer.join()
            timer.cancel()
        if self._fault == "stop" and self._has_struck:
            self._send(signal.SIGKILL)  # nobody else ends what was given up
        if self._fault in ("kill", "stop") and self._has_struck:
            self._wait_until_gone()
        if self._fault.startswith("full"):
            self._refuse(is_full=False)

    def _refuse(self, *, is_full: bool) -> None:
        where = None if self._fault == "full everywhere" else [self._address]
        self._client.run(refuse_space, is_full=is_full, workers=where)
