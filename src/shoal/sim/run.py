"""One run, from a plan to a verdict: faults, then calm, then everything wanted must have ended."""

import re
from dataclasses import dataclass
from functools import partial
from typing import Final

from shoal.sim.cluster import Cluster
from shoal.sim.invariants import (
    ENDED,
    FULL,
    GONE,
    RELEASED,
    RESULTS,
    Invariant,
    broken,
    name_of,
    the_store_has_what_is_held,
    what_is_needed_is_known,
)
from shoal.sim.nemesis import calm, spring, unleash
from shoal.sim.plan import (
    Act,
    Ask,
    Cancel,
    HoldLock,
    Leave,
    Plan,
    Publish,
    Rebalance,
    Release,
    Replicate,
    Restart,
    RetireSome,
    Retry,
    Scatter,
    SetLimit,
    Submit,
    Trade,
    Unpublish,
    Want,
)
from shoal.sim.violation import Violation

KEYS: Final = re.compile("'([^']+)'")
"""Keys that a sentence quotes, to be looked for in the trace."""

STEPS_MAX: Final = 60_000
"""Steps after which a run is taken for a livelock; an ordinary one has about a thousand."""

PATIENCE_SECONDS: Final = 240.0
"""Virtual time that timers get to bring about an end, once nothing else is going on."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a run ended."""

    plan: Plan
    fingerprint: str
    nsteps: int
    nmessages: int
    seconds: float  # of virtual time
    invariant: str = ""  # the one that is broken, if any
    sentence: str = ""
    story: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        """Whether nothing was wrong."""
        return not self.invariant


def run(plan: Plan, *, checks_all: bool = False, nlines: int = 60) -> Verdict:
    """Run a plan to its end.

    Args:
        checks_all: look at the whole state of every machine after each of its steps.
        nlines: how much of the story to keep if something is wrong.
    """
    cluster = Cluster(plan)
    cluster.on_ambush = partial(spring, cluster)
    cluster.after_scheduler_step = partial(_look_at_scheduler, cluster, checks_all)
    cluster.after_worker_step = partial(_look_at_worker, cluster, checks_all)
    try:
        _run(cluster)
    except Violation as violation:
        return _verdict(cluster, violation, nlines)
    except Exception as error:  # a machine that raises is a bug like any other
        words = () if not cluster.trace.lines else (cluster.trace.lines[-1][1],)
        return _verdict(cluster, _raised(error, words), nlines)
    return _verdict(cluster, None, 0)


def _run(cluster: Cluster) -> None:
    plan = cluster.plan
    cluster.start()
    for act in plan.acts:
        cluster.world.at(act.at, _perform, cluster, act)
    unleash(cluster)
    while (next_at := cluster.world.next_at) is not None and next_at <= plan.calm_at:
        _step(cluster)
    cluster.trace.note(plan.calm_at, "nemesis", "is calm")
    cluster.world.at(plan.calm_at, calm, cluster)
    _settle(cluster, ENDED)
    _require(cluster, RESULTS)
    cluster.scheduler.unpublish_all()
    for client in cluster.live_clients():
        client.release_all()
    _require(cluster, RELEASED)
    _drain(cluster)
    for client in cluster.live_clients():
        client.leave()
    _settle(cluster, GONE)


def _settle(cluster: Cluster, invariants: tuple[Invariant, ...]) -> None:
    """Go on until all of these hold; time alone may bring that about, but not for ever."""
    _drain(cluster)
    deadline = cluster.world.now + PATIENCE_SECONDS
    while next(broken(cluster, invariants), None) is not None:
        next_at = cluster.world.next_at
        if next_at is None or next_at > deadline:
            _require(cluster, invariants)
        _step(cluster)
        _drain(cluster)


def _look_at_scheduler(cluster: Cluster, checks_all: bool) -> None:
    """The scheduler has just done something: is all as it should be?"""
    if len(cluster.oracle.known) != len(cluster.scheduler.machine.state.tasks):
        _require(cluster, (what_is_needed_is_known,))
    if checks_all:
        _require(cluster, FULL)


def _look_at_worker(cluster: Cluster, checks_all: bool, address: str) -> None:
    """A worker has just done something: is all as it should be?"""
    worker = cluster.worker_at(address)
    if worker is None:
        return
    for sentence in the_store_has_what_is_held(worker):
        cluster.fail(name_of(the_store_has_what_is_held), sentence)
    if checks_all:
        _require(cluster, FULL)


def _require(cluster: Cluster, invariants: tuple[Invariant, ...]) -> None:
    """End the run if one of these does not hold."""
    for name, sentence in broken(cluster, invariants):
        cluster.fail(name, sentence, *KEYS.findall(sentence))


def _drain(cluster: Cluster) -> None:
    """Go on until only timers are left."""
    while cluster.world.nforeground:
        _step(cluster)


def _step(cluster: Cluster) -> None:
    cluster.world.step()
    if cluster.world.nsteps > STEPS_MAX:
        cluster.fail("runs end", f"there is no end after {STEPS_MAX} steps")


def _perform(cluster: Cluster, act: Act) -> None:
    """A client does what the script says."""
    client = cluster.clients[act.client]
    if client is None or client.is_over:
        return
    cluster.trace.note(cluster.world.now, client.name, type(act).__name__.lower(), f"{act!r}")
    match act:
        case Submit():
            client.submit(act)
        case Release():
            client.release(act)
        case Cancel():
            client.cancel(act)
        case Want():
            client.want(act)
        case Scatter():
            client.scatter(act)
        case Ask():
            client.ask(act)
        case HoldLock():
            client.locking.hold(act)
        case Trade():
            client.trading.trade(act)
        case Retry() | Replicate() | Rebalance() | RetireSome() | Restart() | SetLimit():
            client.members.do(act)
            client.flush()
        case Publish() | Unpublish():
            client.publishing.do(act)
            client.flush()
        case Leave():
            client.leave()


def _raised(error: Exception, words: tuple[str, ...]) -> Violation:
    frame = error.__traceback__
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    where = ""
    if frame is not None:
        code = frame.tb_frame.f_code
        where = f" in {code.co_qualname}, line {frame.tb_lineno}"
    return Violation("no machine raises", f"{type(error).__name__}: {error}{where}", words)


def _verdict(cluster: Cluster, violation: Violation | None, nlines: int) -> Verdict:
    story: tuple[str, ...] = ()
    if violation is not None:
        # Of a short story, everything; of a long one, what is about the culprits.
        words = violation.words if cluster.trace.nlines > nlines else ()
        story = tuple(cluster.trace.last(nlines, words))
    return Verdict(
        cluster.plan,
        cluster.trace.fingerprint,
        cluster.world.nsteps,
        cluster.nmessages,
        cluster.world.now,
        violation.invariant if violation else "",
        violation.sentence if violation else "",
        story,
    )
