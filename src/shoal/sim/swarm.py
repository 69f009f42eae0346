"""From a seed to a plan: which features exist at all in this run, then each decision.

A run with everything on hides bugs behind each other, so each feature and each kind of fault is
switched off at random, seed by seed.
"""

from dataclasses import replace
from math import inf
from random import Random
from typing import Final

from msgspec import structs

from shoal.protocol.messages import TaskOptions
from shoal.sim.faults import KINDS, Drawer, worker_name
from shoal.sim.network import Weather
from shoal.sim.plan import (
    Act,
    Ask,
    Fault,
    Plan,
    Publish,
    RestartScheduler,
    SetLimit,
    Submit,
    Unpublish,
    WorkerPlan,
)
from shoal.sim.returning import used_once
from shoal.sim.rooms import with_room, with_time
from shoal.sim.silences import deafness, lasting_seconds
from shoal.sim.specs import TaskSpec
from shoal.sim.streams import Streams
from shoal.sim.workloads import (
    Maker,
    Script,
    Tuning,
    exchanging,
    has_slots,
    joint_locking,
    locking,
    members,
    random_graph,
    trading,
)

FEATURES: Final = (
    "graph",
    "bundles",
    "external",
    "shared",
    "priorities",
    "retries",
    "pinned",
    "loose",
    "resources",
    "release",
    "cancel",
    "resubmit",
    "want",
    "scatter",
    "failing",
    "unsendable",
    "ask",
    "leave",
)
"""What clients and tasks may do; each is on in about two of three seeds."""

LOCKS: Final = "locks"
"""Claimed in some seeds, by chance of their own."""

TRADES: Final = "trades"
"""Values go through a queue in some seeds."""

MEMBERS: Final = "members"
"""Workers are retired and restarted, results copied and moved, in some seeds."""

SLOTS: Final = "slots"
"""Tasks secede, rejoin, or ask to be run elsewhere, in some seeds."""

LIMITS: Final = "limits"
"""Only so many of some tasks may run at once, in some seeds; clients change that."""

FOOTPRINTS: Final = "footprints"
"""Workers' memory is limited, and tasks take some of it, in some seeds."""

ENDINGS: Final = "endings"
"""Some tasks have a timeout, in some seeds: they may be ended once nobody wants them."""

ACTORS: Final = "actors"
"""Some tasks make actors, in some seeds."""

EXCHANGES: Final = "exchanges"
"""Graphs with shuffles are submitted too, in some seeds."""

ROOM: Final = "room"
"""What comes into workers' memory waits until there is room, in some seeds."""

JOURNAL: Final = "journal"
"""The scheduler keeps a journal, and clients publish what they want, in some seeds."""

LIMIT: Final = 200_000_000
"""Bytes that most workers may have, where that is limited."""

NEVER_SECONDS: Final = 1e6
"""A timeout that is over after all that a run of the simulator takes."""

RARE: Final = {"restart_scheduler": 0.1, "client": 0.3, "let_go": 0.3}
"""Kinds of faults that end so much of a run that they hide others, and how often they exist."""


def expand(seed: int) -> Plan:
    """The plan of `seed`; the same one for ever, as long as this package doesn't change."""
    streams = Streams(seed)
    dice = streams.of("swarm")
    features = _features(streams, dice)
    kinds = [kind for kind in KINDS if dice.random() < RARE.get(kind, 0.45)]
    if dice.random() < 0.05:
        kinds = []
    nclients = dice.choice((1, 1, 2, 3))
    ntasks = dice.choice((5, 10, 10, 20, 30, 60))
    tuning = _tuning(streams.of("tuning"), features)
    workers = _workers(streams.of("workers"), ntasks * tuning.seconds)
    nthreads = sum(worker.nthreads for worker in workers)
    # Faults shall hit work, so everything happens within a few times what the work takes.
    busy_seconds = 0.002 + ntasks * tuning.seconds / nthreads
    span_seconds = busy_seconds * dice.choice((0.3, 1.0, 1.0, 4.0))
    public = Maker(streams.of("public"), tuning)
    acts = _acts(streams, features, nclients, ntasks, public, len(workers), span_seconds)
    if SLOTS in features:
        acts = _with_slots(streams.of("what has slots"), acts)
    if ACTORS in features:
        acts = _with_actors(streams.of("who is an actor"), acts, nclients, span_seconds)
    if LIMITS in features:
        acts = _with_limits(streams.of("what is limited"), acts, nclients, span_seconds)
    if FOOTPRINTS in features:
        workers, acts = _with_footprints(streams.of("what takes memory"), workers, acts)
    if ROOM in features:
        workers, acts = with_room(streams.of("what waits for room"), workers, acts)
    if EXCHANGES in features:
        for client in range(nclients):
            make = Maker(streams.of(f"exchanges {client}"), tuning)
            acts += exchanging(make, client, span_seconds, len(workers))
    if JOURNAL in features:
        acts += _publishing(streams.of("what is published"), nclients, span_seconds)
    faults = _faults(streams, kinds, len(workers), nclients, busy_seconds, acts)
    weather = _weather(streams.of("weather"))
    acts += _again(public, acts, faults, weather)
    settings = _settings(streams.of("settings"))
    if any(isinstance(fault, RestartScheduler) for fault in faults):
        acts = used_once(acts)
        settings += _of_returning(streams.of("returning"))
    if ROOM in features:
        settings = with_time(settings)
    silences = deafness(streams.of("deafness"), len(workers), acts, busy_seconds, settings)
    faults = sorted([*faults, *silences], key=lambda fault: fault.at)
    last_at = max((one.at for one in (*acts, *faults)), default=0.0) + lasting_seconds(silences)
    if "worker_ttl_seconds" in dict(settings):
        last_at += 2.0  # calm must not come before silence is noticed
    return Plan(
        seed,
        workers,
        nclients,
        tuple(acts),
        tuple(faults),
        weather=weather,
        calm_at=last_at + busy_seconds * dice.choice((0.0, 1.0, 5.0)),
        is_encoded=seed % 10 == 0,
        settings=settings,
        features=tuple(sorted(features)) + tuple(kinds),
        sync_seconds=_seconds_of_the_disk(streams.of("syncs")) if JOURNAL in features else None,
    )


def _seconds_of_the_disk(dice: Random) -> float:
    """Of the disk that has the journal."""
    return dice.choice((0.0, 0.001, 0.05))


def _features(streams: Streams, dice: Random) -> frozenset[str]:
    """What there is at all; each of the rarer ones by a chance of its own."""
    features = frozenset(name for name in FEATURES if dice.random() < 0.6)
    if streams.of("locks").random() < 0.3:
        features |= {LOCKS}
    if streams.of("trades").random() < 0.3:
        features |= {TRADES}
    if streams.of("members").random() < 0.35:
        features |= {MEMBERS}
    if streams.of("slots").random() < 0.35:
        features |= {SLOTS}
    if streams.of("actors").random() < 0.35:
        features |= {ACTORS}
    if streams.of("limits").random() < 0.35:
        features |= {LIMITS}
    if streams.of("endings").random() < 0.35:
        features |= {ENDINGS}
    if streams.of("footprints").random() < 0.35:
        features |= {FOOTPRINTS}
    if streams.of("exchanges").random() < 0.35:
        features |= {EXCHANGES}
    if streams.of("room").random() < 0.4:
        features |= {ROOM}
    if streams.of("journal").random() < 0.35:
        features |= {JOURNAL}
    return features


def _workers(dice: Random, span_seconds: float) -> tuple[WorkerPlan, ...]:
    nworkers = dice.choice((1, 2, 2, 3, 3, 4, 6))
    return tuple(
        WorkerPlan(
            nthreads=dice.choice((1, 1, 2, 4)),
            joins_at=0.0 if dice.random() < 0.7 else dice.random() * span_seconds,
            resources=(("slots", float(dice.choice((1, 2)))),) if has_slots(i) else (),
        )
        for i in range(nworkers)
    )


def _tuning(dice: Random, features: frozenset[str]) -> Tuning:
    return Tuning(
        seconds=dice.choice((0.0001, 0.003, 0.03)),
        large_ratio=dice.choice((0.0, 0.5, 1.0, 1.0)),
        failing_ratio=dice.choice((0.05, 0.3)) if "failing" in features else 0.0,
        unsendable_ratio=0.3 if "unsendable" in features and dice.random() < 0.3 else 0.0,
        is_even=dice.random() < 0.2,
    )


def _acts(
    streams: Streams,
    features: frozenset[str],
    nclients: int,
    ntasks: int,
    shared: Maker,
    nworkers: int,
    span_seconds: float,
) -> list[Act]:
    public: list[TaskSpec] = []
    if nclients > 1:
        public = random_graph(shared, "public", streams.of("public").randint(2, 8))
    addresses = tuple(worker_name(i) for i in range(nworkers))
    acts: list[Act] = []
    for client in range(nclients):
        # Versions of shared keys are numbered across clients, so that none is used for two values.
        make = Maker(streams.of(f"graph {client}"), shared.tuning, shared.versions)
        script = Script(
            streams.of(f"client {client}"), make, client, features, addresses, span_seconds, public
        )
        acts += script.write(max(2, ntasks // nclients))
        if LOCKS in features:
            acts += locking(streams.of(f"locks {client}"), client, span_seconds)
            acts += joint_locking(streams.of(f"joints {client}"), client, span_seconds)
        if TRADES in features:
            acts += trading(streams.of(f"trades {client}"), client, span_seconds)
        if MEMBERS in features:
            acts += members(streams.of(f"members {client}"), client, span_seconds, nworkers)
    if ENDINGS in features:
        acts = _with_endings(streams.of("what may be ended"), acts)
    return sorted(acts, key=lambda act: act.at)


def _with_slots(dice: Random, acts: list[Act]) -> list[Act]:
    """Some of the tasks give their slot away, or ask to be run elsewhere."""
    chosen: dict[str, TaskSpec] = {}

    def changed(task: TaskSpec) -> TaskSpec:
        if task.label not in chosen:
            secedes = dice.random() < 0.4
            chosen[task.label] = replace(
                task,
                secedes=secedes,
                rejoins=secedes and dice.random() < 0.5,
                nsent_back=dice.choice((0, 0, 1, 2)),
            )
        return chosen[task.label]

    return [
        replace(act, tasks=tuple(map(changed, act.tasks))) if isinstance(act, Submit) else act
        for act in acts
    ]


def _with_footprints(
    dice: Random, workers: tuple[WorkerPlan, ...], acts: list[Act]
) -> tuple[tuple[WorkerPlan, ...], list[Act]]:
    """Workers have a limit, and tasks grow: as is said beforehand, or as has to be learnt."""
    limits = dice.choice(((LIMIT,), (LIMIT,), (LIMIT, 2 * LIMIT), (LIMIT, 0)))
    workers = tuple(replace(worker, memory_limit=dice.choice(limits)) for worker in workers)
    changed: list[Act] = []
    for act in acts:
        if isinstance(act, Submit) and dice.random() < 0.7:
            ratio = dice.choice((0.05, 0.3, 0.45, 0.6, 0.7, 1.5 if dice.random() < 0.2 else 0.9))
            peak = int(ratio * LIMIT)
            is_even = dice.random() < 0.7
            tasks = tuple(
                replace(task, peak_bytes=peak if is_even else int(peak * dice.random()))
                for task in act.tasks
            )
            act = replace(act, tasks=tasks)  # noqa: PLW2901
            if is_even and dice.random() < 0.5:
                options = structs.replace(act.options or TaskOptions(), memory=peak)
                act = replace(act, options=options)  # noqa: PLW2901
        changed.append(act)
    return workers, changed


def _with_actors(dice: Random, acts: list[Act], nclients: int, span_seconds: float) -> list[Act]:
    """Some of the tasks make actors, and clients ask what became of those."""
    changed: list[Act] = []
    for act in acts:
        if isinstance(act, Submit) and dice.random() < 0.4:
            options = act.options or TaskOptions()
            act = replace(act, options=structs.replace(options, actor=True))  # noqa: PLW2901
        changed.append(act)
    asked = [
        Ask(dice.random() * span_seconds, client, "actor")
        for client in range(nclients)
        for _ in range(dice.choice((0, 1, 3)))
    ]
    return sorted([*changed, *asked], key=lambda act: act.at)


def _with_limits(dice: Random, acts: list[Act], nclients: int, span_seconds: float) -> list[Act]:
    """Of some of the tasks only so many may run at once, and clients say how many now and then."""
    changed: list[Act] = []
    for act in acts:
        if isinstance(act, Submit) and dice.random() < 0.6:
            options = act.options or TaskOptions()
            limits = {"db": dice.choice((0, 1, 1, 2))}
            act = replace(act, options=structs.replace(options, limits=limits))  # noqa: PLW2901
        changed.append(act)
    said = [
        SetLimit(dice.random() * span_seconds, dice.randrange(nclients), dice.choice((None, 1, 3)))
        for _ in range(dice.choice((0, 0, 2)))
    ]
    return sorted([*changed, *said], key=lambda act: act.at)


def _with_endings(dice: Random, acts: list[Act]) -> list[Act]:
    """Some of the tasks have a timeout, which is never over."""
    changed: list[Act] = []
    for act in acts:
        if isinstance(act, Submit) and dice.random() < 0.6:
            options = structs.replace(act.options or TaskOptions(), timeout=NEVER_SECONDS)
            act = replace(act, options=options)  # noqa: PLW2901
        changed.append(act)
    return changed


def _publishing(dice: Random, nclients: int, span_seconds: float) -> list[Act]:
    """Clients publish what they want at that time, and let go of it now and then."""
    acts: list[Act] = []
    for client in range(nclients):
        for _ in range(dice.choice((1, 3, 6))):
            at, name = dice.random() * span_seconds, dice.choice(("m", "n"))
            if dice.random() < 0.25:
                acts.append(Unpublish(at, client, name))
            else:
                every, override = dice.choice((1, 2, 3)), dice.random() < 0.5
                acts.append(Publish(at, client, name, every, override))
    return acts


def _sync_seconds(dice: Random, features: frozenset[str]) -> float | None:
    """How long what is written takes to be on disk; None: no journal is kept."""
    return dice.choice((0.0, 0.001, 0.05)) if JOURNAL in features else None


def _again(make: Maker, acts: list[Act], faults: list[Fault], weather: Weather) -> list[Act]:
    """After a new scheduler took over, the first graph again, with other values.

    Its tasks then get the numbers that they had before, which is what old numbers could hit.
    """
    again: list[Act] = []
    for fault in faults:
        if isinstance(fault, RestartScheduler):
            first = next((act for act in acts if isinstance(act, Submit)), None)
            if first is not None and first.at < fault.at:
                tasks = tuple(make.task(task.key, task.inputs) for task in first.tasks)
                at = fault.at + 2 * weather.notice_seconds
                again.append(replace(first, at=at, tasks=tasks))
    return again


def _faults(
    streams: Streams,
    kinds: list[str],
    nworkers: int,
    nclients: int,
    busy_seconds: float,
    acts: list[Act],
) -> list[Fault]:
    dice = streams.of("faults")
    if not kinds:
        return []
    starts = [act.at for act in acts if isinstance(act, Submit)]
    drawer = Drawer(streams.of, nworkers, nclients, starts, busy_seconds)
    faults: list[Fault] = []
    for _ in range(dice.choice((1, 3, 6, 9, 12))):
        draw = drawer.draw_ambush if dice.random() < 0.75 else drawer.draw
        faults += draw(dice.choice(kinds))
    return sorted(faults, key=lambda fault: fault.at)


def _weather(dice: Random) -> Weather:
    return Weather(
        delay_seconds=dice.choice((0.00005, 0.0005, 0.005)),
        bytes_per_second=dice.choice((3e8, 1e10)),
        detour_ratio=dice.choice((0.0, 0.02, 0.2)),
        detour_seconds=dice.choice((0.01, 0.2)),
        notice_seconds=dice.choice((0.001, 0.02, 0.2)),
    )


def _of_returning(dice: Random) -> tuple[tuple[str, float], ...]:
    """How long another scheduler waits for those who may have results, and those keep them."""
    return (
        ("orphan_seconds", dice.choice((0.05, 2.0))),
        ("recovery_seconds", dice.choice((0.0, 0.02, 1.0))),
    )


def _settings(dice: Random) -> tuple[tuple[str, float], ...]:
    settings: dict[str, float] = {}
    if dice.random() < 0.3:
        settings["worker_saturation"] = dice.choice((1.0, 2.0, inf))
    if dice.random() < 0.3:
        settings["allowed_failures"] = dice.choice((0, 1, 10))
    if dice.random() < 0.3:
        settings["pipe_seconds"] = dice.choice((0.0, 0.1))
    if dice.random() < 0.3:
        settings["inline_bytes_max"] = dice.choice((0, 100))
    if dice.random() < 0.3:
        settings["fetch_attempts_max"] = dice.choice((1, 2, 4))
    if dice.random() < 0.3:
        # Short, and yet longer than anything that can hold up a heartbeat once all is calm.
        settings["heartbeat_seconds"] = 0.1
        settings["worker_ttl_seconds"] = 0.5
    if dice.random() < 0.5:
        # As if it cost nothing to move values: workers fetch from each other all the time.
        settings["bandwidth_bytes_per_second"] = 1e15
        settings["fetch_latency_seconds"] = 0.0
    if dice.random() < 0.5:
        settings["forgets_max"] = dice.choice((1, 3))
        settings["placements_max"] = dice.choice((1, 3))
    if dice.random() < 0.5:
        settings["resting_prefixes_max"] = dice.choice((0, 2))
    if dice.random() < 0.7:
        settings["reduction_seconds"] = dice.choice((0.0005, 0.01, 0.2))
    if dice.random() < 0.5:  # of three heartbeats, in some seeds before workers are given up
        settings["heartbeat_seconds"] = 0.1
        settings["suspect_seconds"] = 0.3
    return tuple(settings.items())
