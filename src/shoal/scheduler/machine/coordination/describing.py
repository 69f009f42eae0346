"""Who holds what, and who waits for it: all that is known of coordination, in plain words."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeVar

from shoal.ids import Key
from shoal.protocol.answers import answer
from shoal.protocol.coordination import Claimant, DescribeCoordination, NamedDescription
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.locks import Claim, Standing

T = TypeVar("T")


def on_describe_coordination(core: Core, client: Client, call: DescribeCoordination) -> None:
    """Answer with what was asked for.  Cost: O(claims), and O(names) if none is named."""
    kinds = _BY_KIND.values() if not call.kind else [_BY_KIND.get(call.kind, _nothing)]
    found = [part for describe in kinds for part in describe(core, call.name)]
    core.to_client(client, answer(call.request, found))


def _named(known: Mapping[str, T], name: str) -> Iterable[tuple[str, T]]:
    """The one of that name, if it is known; "": all."""
    if not name:
        return known.items()
    found = known.get(name)
    return () if found is None else ((name, found),)


def _nothing(core: Core, only: str) -> Iterator[NamedDescription]:
    yield from ()


def _locks(core: Core, only: str) -> Iterator[NamedDescription]:
    for name, lock in _named(core.state.locks, only):
        yield NamedDescription(
            "lock",
            name,
            _claimants(core, lock.held),
            _claimants(core, lock.waiting),
            len(lock.held),
            lock.leases_max,
        )


def _joints(core: Core, only: str) -> Iterator[NamedDescription]:
    joints = core.state.joints
    for name, line in _named(joints.lines, only):
        standing = {claim: joints.claims[claim].standing for claim in line}
        held = {claim: since for claim, since in standing.items() if not since.request}
        waiting = {claim: since for claim, since in standing.items() if since.request}
        holders, others = _claimants(core, held), _claimants(core, waiting)
        yield NamedDescription("joint lock", name, holders, others, len(holders), 1)


def _events(core: Core, only: str) -> Iterator[NamedDescription]:
    for name, event in _named(core.state.events, only):
        waiting = _claimants(core, event.waiting)
        yield NamedDescription("event", name, [], waiting, int(event.is_set))


def _queues(core: Core, only: str) -> Iterator[NamedDescription]:
    for name, queue in _named(core.state.queues, only):
        standing = {claim: putting.standing for claim, putting in queue.putting.items()}
        standing |= {claim: taking.standing for claim, taking in queue.taking.items()}
        waiting = _claimants(core, standing)
        yield NamedDescription("queue", name, [], waiting, len(queue.items), queue.size_max)


def _variables(core: Core, only: str) -> Iterator[NamedDescription]:
    for name, variable in _named(core.state.variables, only):
        waiting = _claimants(core, variable.waiting)
        yield NamedDescription("variable", name, [], waiting, int(variable.item is not None))


def _channels(core: Core, only: str) -> Iterator[NamedDescription]:
    for name, channel in _named(core.state.channels, only):
        listening = _claimants(core, channel.subscribers)
        yield NamedDescription("channel", name, listening)


def _claimants(core: Core, claims: Mapping[Claim, Standing]) -> list[Claimant]:
    return [_claimant(core, claim, standing) for claim, standing in claims.items()]


def _claimant(core: Core, claim: Claim, standing: Standing) -> Claimant:
    task = core.state.tasks.get(Key(standing.by))
    worker = "" if task is None or task.worker is None else task.worker.address
    return Claimant(claim.client.name, standing.by, worker, core.now - standing.at)


_BY_KIND: Final = {
    "lock": _locks,
    "joint lock": _joints,
    "event": _events,
    "queue": _queues,
    "variable": _variables,
    "channel": _channels,
}

HANDLERS = Handlers(from_client={DescribeCoordination: on_describe_coordination})
