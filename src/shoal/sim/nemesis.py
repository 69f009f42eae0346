"""Makes the planned faults happen, and makes all of them end."""

from dataclasses import replace
from typing import Final

from shoal.sim.cluster import Cluster, Place
from shoal.sim.faults import worker_index, worker_name
from shoal.sim.plan import (
    Ambush,
    BreakConnection,
    Cancel,
    ClientDies,
    Copy,
    Crash,
    CutPeers,
    Deafen,
    Fault,
    Freeze,
    LetGo,
    Pause,
    Release,
    RestartScheduler,
    Retire,
    SlowLink,
    SlowWorker,
    Spill,
    Stall,
)

LEAVING_SECONDS: Final = 0.01
"""What a worker that leaves takes from saying so to being gone."""


def unleash(cluster: Cluster) -> None:
    """Plan every fault of the plan."""
    for fault in cluster.plan.faults:
        if isinstance(fault, Ambush):
            cluster.ambushes.setdefault((fault.occasion, fault.nth), []).append(fault)
        else:
            cluster.world.at(fault.at, perform, cluster, fault)


def spring(cluster: Cluster, ambush: Ambush, worker: str, other: str) -> None:
    """The occasion has come: let it happen to those who take part, a moment later or at once."""
    victim = other if ambush.befalls_other else worker
    fault = ambush.fault
    if isinstance(fault, Stall):
        fault = replace(fault, a=victim)
    elif isinstance(fault, LetGo):
        pass  # whoever takes part, the client is a third
    elif isinstance(fault, CutPeers):
        fault = replace(fault, a=worker_index(worker), b=worker_index(other))
    else:
        fault = replace(fault, worker=worker_index(victim))
    dice = cluster.streams.of("ambush")
    pause = dice.choice((0.0, 0.0, 1.0, 5.0)) * cluster.plan.weather.delay_seconds
    cluster.world.after(pause, perform, cluster, fault)


def calm(cluster: Cluster) -> None:
    """Heal what is wrong, and see to it that there is a worker at each place."""
    cluster.is_calm = True
    cluster.network.heal()
    for place in cluster.places:
        worker = place.worker
        if worker is not None:
            worker.slowness = (1.0, 0.0)
            worker.disk.heal()
            worker.thaw()  # and it may hear now that it was sent away long ago
        place.start()


def perform(cluster: Cluster, fault: Fault) -> None:
    if cluster.is_calm:
        return
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
            client = cluster.clients[index] if index < len(cluster.clients) else None
            if client is not None and not client.is_over:
                if only_connection:
                    client.end.connection.break_now()
                else:
                    client.die()
        case Copy(_, index, every):
            if index < len(cluster.places):
                cluster.scheduler.copy_to(worker_name(index), every)
        case LetGo(_, index, every, is_cancel):
            client = cluster.clients[index] if index < len(cluster.clients) else None
            if client is not None:
                keys = tuple(client.held)[::every]
                if is_cancel:
                    client.cancel(Cancel(now, index, keys))
                else:
                    client.release(Release(now, index, keys))
        case RestartScheduler():
            cluster.restart_scheduler()
        case Ambush():
            raise AssertionError("an ambush waits for its occasion")
        case _:
            if fault.worker < len(cluster.places):
                _befall(cluster, cluster.places[fault.worker], fault)


def _befall(
    cluster: Cluster,
    place: Place,
    fault: Crash | Retire | BreakConnection | Freeze | Deafen | SlowWorker | Spill | Pause,
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
        case Retire(_, index, _) if index % 2 == 1:
            worker.ask_to_go()
        case Retire(_, _, seconds):
            worker.leave()
            cluster.world.after(LEAVING_SECONDS, _go, place, worker)
            if seconds is not None:
                cluster.world.after(LEAVING_SECONDS + seconds, place.start)
        case BreakConnection(_, _, seconds):
            worker.reconnect_seconds = seconds
            worker.break_connection()
        case Freeze(_, _, seconds):
            worker.freeze(cluster.world.now + seconds)
        case Deafen(_, _, seconds, breaks):
            worker.deafen(cluster.world.now + seconds, breaks)
        case Pause(_, _, seconds, leaks):
            worker.when_awake(worker.shortage.begin, cluster.world.now + seconds, leaks)
        case Spill(_, _, nbytes, bad_every, seconds):
            worker.when_awake(worker.disk.spill, nbytes, bad_every, cluster.world.now + seconds)
        case SlowWorker(_, _, factor, seconds):
            worker.slowness = (factor, cluster.world.now + seconds)


def _go(place: Place, worker: object) -> None:
    """The worker that said that it leaves has gone."""
    if place.worker is worker:
        place.crash()
        if place.cluster.is_calm:
            place.start()
