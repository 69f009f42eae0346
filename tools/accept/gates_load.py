"""A long day: a million futures, and a thousand clients that come and go, leave nothing behind.

And ten thousand workers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from tools.accept.figure import GATES, Figure

NTASKS = 1_000_000
ROUND_TASKS = 50_000
"""Futures that are alive at once."""
WARM_UP_ROUNDS = 4
"""As many before the first look: what is allocated once is not what grows."""
GROWTH_BYTES_MAX = 10
"""For each task, in each process."""

NCLIENTS = 1_000
CLIENT_GROWTH_BYTES_MAX = 2_000
SECONDS_MAX = 180

NWORKERS = 10_000
REGISTER_SECONDS_MAX = 60
LOOK_SECONDS = 20.0
SHARE_MAX = 0.2


class Standing(NamedTuple):
    """What a process has, once it has let go of all that it can."""

    resident_bytes: int
    nthreads: int
    ndescriptors: int


class Kept(NamedTuple):
    """What a scheduler keeps."""

    nclients: int
    ntasks: int
    ncodes: int
    nkept: int


@GATES.register("long day")
def long_day() -> Iterator[Figure]:
    """Both in one cluster, of processes; within three minutes."""
    from shoal import Client

    started_at = monotonic()
    with Client(n_workers=1, threads_per_worker=2, dashboard_address=None) as client:
        yield from million_futures(client, NTASKS)
        yield from coming_and_going(client, NCLIENTS)
    seconds = monotonic() - started_at
    yield Figure("long day", f"{seconds:.0f} s", f"<= {SECONDS_MAX} s", seconds <= SECONDS_MAX)


def million_futures(client: Any, ntasks: int, round_tasks: int = ROUND_TASKS) -> Iterator[Figure]:
    """Submit, gather, drop, again and again; what that has cost each process for ever."""
    for _ in range(WARM_UP_ROUNDS):
        _round(client, round_tasks)
    before = _all_standing(client)
    started_at = monotonic()
    nsubmitted = 0
    while nsubmitted < ntasks:
        _round(client, round_tasks)
        nsubmitted += round_tasks
    seconds = monotonic() - started_at
    after = _all_standing(client)
    for role, then in before.items():
        grown = (after[role].resident_bytes - then.resident_bytes) / nsubmitted
        yield Figure(
            f"{nsubmitted:,} futures, growth of the {role}",
            f"{grown:.1f} bytes per task, {nsubmitted / seconds:,.0f} tasks/s",
            f"< {GROWTH_BYTES_MAX} bytes",
            grown < GROWTH_BYTES_MAX,
        )
    yield _kept_nothing(client, f"after {nsubmitted:,} futures")


def coming_and_going(client: Any, nclients: int) -> Iterator[Figure]:
    """Clients that each connect, compute, leave something unfinished, and go."""
    _visits(client, max(1, nclients // 10))
    before = _all_standing(client)
    started_at = monotonic()
    _visits(client, nclients)
    seconds = monotonic() - started_at
    after = _all_standing(client)
    for role, then in before.items():
        grown = (after[role].resident_bytes - then.resident_bytes) / nclients
        more = (
            after[role].nthreads - then.nthreads,
            after[role].ndescriptors - then.ndescriptors,
        )
        yield Figure(
            f"{nclients:,} clients, growth of the {role}",
            f"{grown:,.0f} bytes per client, {more[0]} threads, {more[1]} descriptors, "
            f"{1000 * seconds / nclients:.1f} ms each",
            f"< {CLIENT_GROWTH_BYTES_MAX:,} bytes, 0, 0",
            grown < CLIENT_GROWTH_BYTES_MAX and max(more) <= 0,
        )
    yield _kept_nothing(client, f"after {nclients:,} clients")


def _round(client: Any, ntasks: int) -> None:
    futures = client.map(abs, range(ntasks), pure=False)
    assert client.gather(futures) == list(range(ntasks))


def _visits(client: Any, nclients: int) -> None:
    from shoal import Client

    for n in range(nclients):
        with Client(client.cluster, set_as_default=False) as visitor:
            assert visitor.submit(abs, -n, pure=False).result() == n
            visitor.submit(abs, n, workers=["nobody"], pure=False)


def _kept_nothing(client: Any, when: str) -> Figure:
    def look(dask_scheduler: Any) -> tuple[int, ...]:
        state = dask_scheduler.machine.state
        return len(state.clients), len(state.tasks), len(state.codes), len(state.keepers)

    _all_standing(client)  # a round trip to everybody: what was said before has been heard
    kept = Kept(*client.run_on_scheduler(look))
    said = f"{kept.nclients} clients, {kept.ntasks} tasks, {kept.ncodes} codes"
    return Figure(
        f"the scheduler keeps, {when}",
        said,
        "1 client, 0 tasks, few codes",
        kept.nclients == 1 and kept.ntasks == 0 and kept.ncodes < 10 and kept.nkept == 0,
    )


def _all_standing(client: Any) -> dict[str, Standing]:
    def standing() -> tuple[int, int, int]:  # in here, so that it travels by value
        import ctypes
        import gc

        import psutil

        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        process = psutil.Process()
        return process.memory_info().rss, process.num_threads(), process.num_fds()

    found = {"client": standing(), "scheduler": client.run_on_scheduler(standing)}
    [worker] = client.run(standing).values()
    return {role: Standing(*facts) for role, facts in {**found, "worker": worker}.items()}


@GATES.register("ten thousand workers")
def ten_thousand_workers() -> Iterator[Figure]:
    """Each a connection that registers and says that it lives; they run nothing."""
    from tests.faults.kit.roles import Cast
    from tests.faults.many_workers import crowd

    with tempfile.TemporaryDirectory() as folder, Cast(Path(folder)) as cast:
        role, address = cast.scheduler()
        found = asyncio.run(crowd(address, cast.keyring(address), role.pid, NWORKERS, LOOK_SECONDS))
        complaints = cast.complaints()
    yield Figure(
        f"{NWORKERS:,} workers register",
        f"{found.nregistered:,} in {found.register_seconds:.0f} s, {found.nlost} lost"
        f"{''.join(f'; {each}' for each in complaints[:3])}",
        f"all in {REGISTER_SECONDS_MAX} s, none lost",
        passed=found.nregistered == NWORKERS
        and found.nlost == 0
        and not complaints
        and found.register_seconds <= REGISTER_SECONDS_MAX,
    )
    yield Figure(
        "their signs of life, of one processor",
        f"{100 * found.processor_share:.0f} %",
        f"<= {100 * SHARE_MAX:.0f} %",
        passed=found.processor_share <= SHARE_MAX,
    )
