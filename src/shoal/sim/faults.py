"""What may go wrong, drawn far denser than life would."""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

from shoal.sim.plan import (
    Ambush,
    BreakConnection,
    ClientDies,
    Copy,
    Crash,
    CutPeers,
    Fault,
    Freeze,
    LetGo,
    Pause,
    RestartScheduler,
    Retire,
    SlowLink,
    SlowWorker,
    Spill,
    Stall,
)

SCHEDULER: Final = "scheduler"
"""The scheduler's name in the network."""


def worker_name(index: int) -> str:
    """A worker's place, which is its name and its address."""
    return f"tcp://w{index}:1"


def worker_index(name: str) -> int:
    """Which place a worker's name means."""
    return int(name.removeprefix("tcp://w").removesuffix(":1"))


def client_name(index: int) -> str:
    """A client's name in the network."""
    return f"client-{index}"


class Drawer:
    """Draws single faults; each kind from dice of its own."""

    def __init__(
        self,
        dice: Callable[[str], Random],
        nworkers: int,
        nclients: int,
        starts: Sequence[float],
        busy_seconds: float,
    ) -> None:
        """`starts`: when work arrives, which then takes about `busy_seconds`."""
        self._dice = dice
        self._nworkers = nworkers
        self._nclients = nclients
        self._starts = starts or (0.0,)
        self._busy = busy_seconds

    def draw(self, kind: str) -> list[Fault]:
        """One fault of `kind`: several parts of one if it is a swizzle, none if it can't be."""
        dice = self._dice(f"fault {kind}")
        at = dice.choice(self._starts) + dice.random() ** 2 * 2.0 * self._busy
        pause = dice.random() ** 2 * 3.0 * self._busy
        worker = dice.randrange(self._nworkers) if self._nworkers else -1
        if kind == "restart_scheduler":
            return [RestartScheduler(at)]
        if kind == "let_go":
            client = dice.randrange(self._nclients)
            return [LetGo(at, client, dice.choice((1, 1, 2, 3)), dice.random() < 0.3)]
        if kind == "client":
            if self._nclients < 2:
                return []
            # Client 0 always lives, so that something is left to ask for.
            return [ClientDies(at, dice.randrange(1, self._nclients), dice.random() < 0.5)]
        if worker < 0:
            return []
        return self._of_worker(kind, dice, at, pause, worker)

    def draw_ambush(self, kind: str) -> list[Fault]:
        """Faults as by `draw`, but waiting for an occasion if they can."""
        dice = self._dice(f"ambush {kind}")
        drawn = self.draw(kind)
        occasion = dice.choice(tuple(OCCASIONS))
        return [
            Ambush(
                0.0,
                occasion,
                int(dice.expovariate(1.0) * OCCASIONS[occasion]),
                fault,
                befalls_other=dice.random() < 0.5,
            )
            if isinstance(fault, MAY_WAIT) and len(drawn) == 1
            else fault
            for fault in drawn
        ]

    def _of_worker(
        self, kind: str, dice: Random, at: float, pause: float, worker: int
    ) -> list[Fault]:
        match kind:
            case "crash":
                return [Crash(at, worker, dice.choice((None, 0.0, pause)))]
            case "retire":
                return [Retire(at, worker, dice.choice((None, pause)))]
            case "break":
                return [BreakConnection(at, worker, dice.choice((0.0, 0.01, pause)))]
            case "freeze":
                return [Freeze(at, worker, dice.choice((pause, pause, 2.5)))]
            case "pause":
                return [Pause(at, worker, dice.choice((pause, 2.5)), dice.random() < 0.3)]
            case "slow_worker":
                return [SlowWorker(at, worker, dice.choice((3.0, 30.0)), pause)]
            case "slow_link":
                other = self._other(dice, worker)
                factor = dice.choice((5.0, 50.0))
                return [SlowLink(at, worker_name(worker), other, factor, pause)]
            case "stall":
                seconds = dice.choice((pause, pause, 2.5))
                return [Stall(at, worker_name(worker), self._other(dice, worker), seconds)]
            case "cut":
                if self._nworkers < 2:
                    return []
                other_worker = (worker + dice.randrange(1, self._nworkers)) % self._nworkers
                return [CutPeers(at, worker, other_worker, pause)]
            case "copy":
                return [Copy(at, worker, dice.choice((1, 2, 5)))]
            case "spill":
                nbytes, bad_every = dice.choice((1000, 10**6)), dice.choice((0, 0, 2, 3))
                begins_at, seconds = dice.choice(((at, pause), (0.0, 3 * self._busy)))
                return [
                    Spill(begins_at, short, nbytes, bad_every, seconds)
                    for short in dice.choice(([worker], range(self._nworkers)))
                ]
            case "swizzle":
                return self._swizzle(dice, at, pause)
        raise ValueError(f"there is no fault of the kind {kind!r}")

    def _other(self, dice: Random, worker: int) -> str:
        """The other side of one of the worker's links; the scheduler is as likely as not."""
        if self._nworkers < 2 or dice.random() < 0.5:
            return SCHEDULER
        return worker_name((worker + dice.randrange(1, self._nworkers)) % self._nworkers)

    def _swizzle(self, dice: Random, at: float, pause: float) -> list[Fault]:
        """Stop some workers' links one after another, and let them go again in another order."""
        chosen = dice.sample(range(self._nworkers), dice.randint(1, self._nworkers))
        ends = dice.sample(range(len(chosen)), len(chosen))
        step = pause / (2 * len(chosen))
        return [
            Stall(
                at + i * step,
                worker_name(worker),
                SCHEDULER,
                (len(chosen) - i + ends[i]) * step,
            )
            for i, worker in enumerate(chosen)
        ]


MAY_WAIT: Final = (
    Crash,
    Retire,
    BreakConnection,
    Freeze,
    Stall,
    CutPeers,
    LetGo,
    Copy,
    Spill,
    Pause,
)
"""What may wait in ambush."""

OCCASIONS: Final = {
    "fetch": 2.0,  # a worker is about to ask another for values
    "serve": 2.0,  # a worker has been asked for values, and sends them
    "begin": 10.0,  # a thread begins a run
    "end": 10.0,  # a run has ended, and the worker says so
    "free": 5.0,  # a worker is told to let go of values
    "recall": 2.0,  # a worker is told to give back runs
    "register": 2.0,  # a worker has said who it is
    "put": 1.0,  # a client's value arrives at a worker
    "write": 2.0,  # a value is about to be written to disk
    "read": 2.0,  # a run waits for a value on disk
}
"""What an ambush may wait for, and for which of its kind on average."""

KINDS: Final = (
    "crash",
    "retire",
    "break",
    "freeze",
    "slow_worker",
    "slow_link",
    "stall",
    "cut",
    "swizzle",
    "client",
    "let_go",
    "copy",
    "restart_scheduler",
    "spill",
    "pause",
)
"""Every kind of fault that a swarm may switch on."""
