"""From a seed to a plan: which features exist at all in this run, then each decision.

A run with everything on hides bugs behind each other, so each feature and each kind of fault is
switched off at random, seed by seed.
"""

from random import Random
from typing import Final

from shoal.sim.faults import KINDS, Drawer, worker_name
from shoal.sim.network import Weather
from shoal.sim.plan import Act, Fault, Plan, WorkerPlan
from shoal.sim.specs import TaskSpec
from shoal.sim.streams import Streams
from shoal.sim.workloads import Maker, Script, Tuning, random_graph

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
    "leave",
)
"""What clients and tasks may do; each is on in about two of three seeds."""


def expand(seed: int) -> Plan:
    """The plan of `seed`; the same one for ever, as long as this package doesn't change."""
    streams = Streams(seed)
    dice = streams.of("swarm")
    features = frozenset(name for name in FEATURES if dice.random() < 0.6)
    kinds = [kind for kind in KINDS if dice.random() < 0.45]
    if dice.random() < 0.15:
        kinds = []
    span_seconds = dice.choice((0.1, 0.5, 2.0))
    nclients = dice.choice((1, 1, 2, 3))
    workers = _workers(streams.of("workers"), span_seconds)
    acts = _acts(streams, features, nclients, len(workers), span_seconds)
    faults = _faults(streams, kinds, len(workers), nclients, span_seconds)
    ends = [act.at for act in acts] + [fault.at for fault in faults]
    return Plan(
        seed,
        workers,
        nclients,
        tuple(acts),
        tuple(faults),
        weather=_weather(streams.of("weather")),
        calm_at=max(ends, default=0.0) + dice.choice((0.0, 0.05, 1.0)),
        is_encoded=seed % 10 == 0,
        settings=_settings(streams.of("settings")),
        features=tuple(sorted(features)) + tuple(kinds),
    )


def _workers(dice: Random, span_seconds: float) -> tuple[WorkerPlan, ...]:
    nworkers = dice.choice((1, 1, 2, 2, 3, 4, 6))
    return tuple(
        WorkerPlan(
            nthreads=dice.choice((1, 1, 2, 4)),
            joins_at=0.0 if dice.random() < 0.7 else dice.random() * span_seconds,
            # At least the first offers what tasks may ask for.
            resources=(("slots", float(dice.choice((1, 2)))),) if i == 0 or i % 2 else (),
        )
        for i in range(nworkers)
    )


def _acts(
    streams: Streams, features: frozenset[str], nclients: int, nworkers: int, span_seconds: float
) -> list[Act]:
    dice = streams.of("tuning")
    tuning = Tuning(
        seconds=dice.choice((0.0001, 0.003, 0.03)),
        large_ratio=dice.choice((0.0, 0.3, 1.0)),
        failing_ratio=dice.choice((0.05, 0.3)) if "failing" in features else 0.0,
        is_even=dice.random() < 0.2,
    )
    ntasks = dice.choice((5, 10, 10, 20, 30, 60))
    shared = Maker(streams.of("public"), tuning)
    public: list[TaskSpec] = []
    if nclients > 1:
        public = random_graph(shared, "public", dice.randint(2, 8))
    addresses = tuple(worker_name(i) for i in range(nworkers))
    acts: list[Act] = []
    for client in range(nclients):
        # Versions of shared keys are numbered across clients, so that none is used for two values.
        make = Maker(streams.of(f"graph {client}"), tuning, shared.versions)
        script = Script(
            streams.of(f"client {client}"), make, client, features, addresses, span_seconds, public
        )
        acts += script.write(max(2, ntasks // nclients))
    return sorted(acts, key=lambda act: act.at)


def _faults(
    streams: Streams, kinds: list[str], nworkers: int, nclients: int, span_seconds: float
) -> list[Fault]:
    dice = streams.of("faults")
    faults: list[Fault] = []
    if kinds:
        drawer = Drawer(streams.of, nworkers, nclients, span_seconds * dice.choice((0.3, 1.0)))
        for _ in range(dice.choice((1, 2, 4, 8, 12))):
            faults += drawer.draw(dice.choice(kinds))
    return sorted(faults, key=lambda fault: fault.at)


def _weather(dice: Random) -> Weather:
    return Weather(
        delay_seconds=dice.choice((0.00005, 0.0005, 0.005)),
        detour_ratio=dice.choice((0.0, 0.02, 0.2)),
        detour_seconds=dice.choice((0.01, 0.2)),
        notice_seconds=dice.choice((0.001, 0.02, 0.2)),
    )


def _settings(dice: Random) -> tuple[tuple[str, float], ...]:
    settings: dict[str, float] = {}
    if dice.random() < 0.3:
        settings["worker_saturation"] = dice.choice((1.0, 2.0, float("inf")))
    if dice.random() < 0.3:
        settings["allowed_failures"] = dice.choice((0, 1, 10))
    return tuple(settings.items())


