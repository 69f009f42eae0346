"""Makes the planned faults happen, and makes all of them end."""

from typing import Final

from shoal.sim.cluster import Cluster, Place
from shoal.sim.faults import worker_name
from shoal.sim.plan import (
    BreakConnection,
    ClientDies,
    Crash,
    CutPeers,
    Fault,
    Freeze,
    RestartScheduler,
    Retire,
    SlowLink,
    SlowWorker,
    Stall,
)

LEAVING_SECONDS: Final = 0.01
"""What a worker that leaves takes from saying so to being gone."""


def unleash(cluster: Cluster) -> None:
    """Plan every fault of the plan."""
    for fault in cluster.plan.faults:
        cluster.world.at(fault.at, _perform, cluster, fault)


def calm(cluster: Cluster) -> None:
    """Heal what is wrong, and see to it that there is a worker at each place."""
    cluster.network.heal()
    for place in cluster.places:
        if place.worker is not None:
            place.worker.thaw()
            place.worker.slowness = (1.0, 0.0)
        place.start()


def _perform(cluster: Cluster, fault: Fault) -> None:
    now = cluster.world.now
    cluster.trace.note(now, "nemesis", "does", fault)
    match fault:
        case SlowLink(_, a, b, factor, seconds):
            cluster.network.slow(a, b, factor, now + seconds)
        case Stall(_, a, b, seconds):
            cluster.network.stall(a, b, now + seconds)
        case CutPeers(_, one, other, seconds):
            cluster.network.cut(worker_name(one), worker_name(other), now + seconds)
        case ClientDies(_, index, only_connection):
            client = cluster.clients[index]
            if client is not None and not client.is_over:
                if only_connection:
                    client.end.connection.break_now()
                else:
                    client.die()
        case RestartScheduler():
            cluster.restart_scheduler()
        case _:
            if fault.worker < len(cluster.places):
                _befall(cluster, cluster.places[fault.worker], fault)


def _befall(
    cluster: Cluster,
    place: Place,
    fault: Crash | Retire | BreakConnection | Freeze | SlowWorker,
) -> None:
    """One worker's misfortune."""
    worker = place.worker
    if worker is None:
        return
    match fault:
        case Crash(_, _, seconds):
            place.crash()
            if seconds is not None:
                cluster.world.after(seconds, place.start)
        case Retire(_, _, seconds):
            worker.leave()
            cluster.world.after(LEAVING_SECONDS, _crash_if, place, worker)
            if seconds is not None:
                cluster.world.after(LEAVING_SECONDS + seconds, place.start)
        case BreakConnection(_, _, seconds):
            worker.reconnect_seconds = seconds
            worker.break_connection()
        case Freeze(_, _, seconds):
            worker.freeze(cluster.world.now + seconds)
        case SlowWorker(_, _, factor, seconds):
            worker.slowness = (factor, cluster.world.now + seconds)


def _crash_if(place: Place, worker: object) -> None:
    if place.worker is worker:
        place.crash()
