"""Locks under load: what an acquisition costs in messages, and that nothing of it stays."""

import gc
import sys
import time
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import cloudpickle

from tools.accept.figure import GATES, Figure

NTASKS: Final = 100
NACQUISITIONS: Final = 10_000
MESSAGES_MAX: Final = 3.0
"""Of one acquisition: asked for, granted, released."""
GROWTH_BYTES_MAX: Final = 20.0
OF_TASKS: Final = frozenset(
    ("ClientHeartbeat", "DefineClientCode", "ForgetClientCode", "ReleaseTasks", "SubmitTasks",
     "TaskInMemory")
)  # fmt: skip
"""Said for the tasks themselves, or anyway."""


@GATES.register("lock acquisitions")
def lock_acquisitions() -> Iterator[Figure]:
    """10,000 acquisitions of one lock by 100 tasks on two worker processes.

    All that clients say to the scheduler and hear from it is counted, but for what is about tasks;
    what the scheduler has allocated is compared before and after.
    """
    from shoal import Client, LocalCluster

    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # other processes lack it
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        run_all(client, NACQUISITIONS // 10)
        client.run_on_scheduler(begin_counting)
        started_at = time.perf_counter()
        nheld = run_all(client, NACQUISITIONS)
        seconds = time.perf_counter() - started_at
        counted = client.run_on_scheduler(end_counting)
    said = {kind: n for kind, n in counted["messages"].items() if kind not in OF_TASKS}
    nmessages = sum(said.values()) / nheld
    growth = counted["nbytes"] / nheld
    yield Figure(
        f"messages per acquisition, {nheld:,} by {NTASKS} tasks",
        f"{nmessages:.2f}, {counted['nlocks']} locks left, {nheld / seconds:,.0f} per second",
        f"<= {MESSAGES_MAX:.0f}, none left",
        passed=nheld == NACQUISITIONS and nmessages <= MESSAGES_MAX and not counted["nlocks"],
    )
    yield Figure(
        "growth of the scheduler per acquisition",
        f"{growth:.1f} bytes",
        f"< {GROWTH_BYTES_MAX:.0f} bytes",
        passed=growth < GROWTH_BYTES_MAX,
    )


def run_all(client: Any, nacquisitions: int) -> int:
    """Have that many by all tasks together; how many there were."""
    each = nacquisitions // NTASKS
    futures = client.map(acquire_often, range(NTASKS), nacquisitions=each, pure=False)
    return sum(client.gather(futures))


def acquire_often(index: int, nacquisitions: int) -> int:
    """One task: the lock that all want, again and again."""
    from shoal import Lock

    lock = Lock("busy")
    for _ in range(nacquisitions):
        with lock:
            pass
    return nacquisitions


def begin_counting(dask_scheduler: Any) -> None:
    """Count the messages of clients from now on, by kind, and what is allocated."""
    machine = dask_scheduler.machine
    counts: Counter[str] = Counter()
    receive, take = machine.receive_from_client, machine.take_outgoing

    def receive_and_count(client: Any, messages: Any, now: float) -> None:
        counts.update(type(message).__name__ for message in messages)
        receive(client, messages, now)

    def take_and_count() -> Any:
        outgoing = take()
        for peer, messages in outgoing:
            if type(peer).__name__ == "Client":
                counts.update(type(message).__name__ for message in messages)
        return outgoing

    machine.receive_from_client, machine.take_outgoing = receive_and_count, take_and_count
    tracemalloc.start()
    gc.collect()
    machine.counted = counts, tracemalloc.get_traced_memory()[0]


def end_counting(dask_scheduler: Any) -> dict[str, Any]:
    """What was counted."""
    machine = dask_scheduler.machine
    counts, nbytes_before = machine.counted
    gc.collect()
    nbytes = tracemalloc.get_traced_memory()[0] - nbytes_before
    return {"messages": dict(counts), "nbytes": nbytes, "nlocks": len(machine.state.locks)}
