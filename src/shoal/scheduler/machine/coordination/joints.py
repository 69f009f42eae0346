"""Several names at once, all or none: who stands in line for each, and who holds enough.

A claim takes its place in all lines together, and holds nothing until it is first in as many as it
wants; so no two claims wait for each other.  It ends with the connection of its client.
"""

from collections import OrderedDict
from collections.abc import Iterator

from shoal.protocol.answers import answer
from shoal.protocol.coordination import AcquireJointly, ReleaseJointly
from shoal.protocol.framing import ProtocolError
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.locks import Claim, Joint, Joints, Standing
from shoal.scheduler.model.state import SchedulerState


def on_acquire_jointly(core: Core, client: Client, call: AcquireJointly) -> None:
    """Grant so many of the names now, or later if the caller waits.

    Raises:
        ProtocolError: more are wanted than named, or none, or the claim's number is in use.
    """
    joints = core.state.joints
    claim = Claim(client, call.claim)
    names = list(dict.fromkeys(call.names))
    if claim in joints.claims:
        raise ProtocolError("AcquireJointly uses the number of a claim that has not ended")
    if not min(1, len(names)) <= call.count <= len(names):
        raise ProtocolError("AcquireJointly wants none of its names, or more than it has")
    joint = Joint(names, call.count, Standing(core.now, call.by, call.request))
    joints.claims[claim] = joint
    for name in names:
        line = joints.lines.get(name)
        if line is None:
            line = joints.lines[name] = OrderedDict()
        line[claim] = None
    _grant(core, {claim: None})
    if joint.standing.request and not call.waits:
        _end(core, claim)


def on_release_jointly(core: Core, client: Client, message: ReleaseJointly) -> None:
    """End a claim, held or waiting; one that is not known has ended already."""
    _end(core, Claim(client, message.claim))


def drop_claims(core: Core, client: Client) -> None:
    """The client has gone, and its claims with it.  Cost: O(claims)."""
    if core.state.joints:
        for claim in [claim for claim in core.state.joints.claims if claim.client is client]:
            _end(core, claim)


def lines_are_sound(state: SchedulerState) -> Iterator[str]:
    """Every claim is of a client that is there, holds all or nothing, and waits for good reason."""
    joints = state.joints
    for claim, joint in joints.claims.items():
        if state.clients.get(claim.client.id) is not claim.client:
            yield f"{joint} is of {claim.client}, which has gone"
        if len(joint.holding) not in (0, joint.count):
            yield f"{joint} holds {len(joint.holding)} names"
        for name in joint.holding or joint.names:
            if claim not in joints.lines.get(name, {}):
                yield f"{joint} does not stand in line for {name!r}"
        for name in joint.holding:
            if next(iter(joints.lines[name])) != claim:
                yield f"{joint} holds {name!r}, and is not first in line"
        if not joint.holding and len(_first_in(joints, claim, joint)) >= joint.count > 0:
            yield f"{joint} waits, and is first in line"
    for name, line in joints.lines.items():
        if not line:
            yield f"there is a line for {name!r}, and nobody in it"
        for claim in line:
            if claim not in joints.claims:
                yield f"{claim} stands in line for {name!r}, and has ended"


def _first_in(joints: Joints, claim: Claim, joint: Joint) -> list[str]:
    """The names for which this claim is first in line."""
    return [name for name in joint.names if next(iter(joints.lines[name])) == claim]


def _grant(core: Core, due: dict[Claim, None]) -> None:
    """Let each of these hold as many names as it wants, if so many can be had; it leaves the other
    lines, where somebody else may be first then."""
    joints = core.state.joints
    while due:
        claim, _ = due.popitem()
        joint = joints.claims[claim]
        free = _first_in(joints, claim, joint)
        if joint.holding or len(free) < joint.count:
            continue
        joint.holding = free[: joint.count]
        core.to_client(claim.client, answer(joint.standing.request, True))
        joint.standing = Standing(core.now, joint.standing.by)
        held = dict.fromkeys(joint.holding)
        others = [name for name in joint.names if name not in held]
        due.update(_leave(joints, claim, others))


def _leave(joints: Joints, claim: Claim, names: list[str]) -> dict[Claim, None]:
    """Stand in these lines no more; whoever is first in one of them now."""
    heirs: dict[Claim, None] = {}
    for name in names:
        line = joints.lines[name]
        was_first = next(iter(line)) == claim
        del line[claim]
        if not line:
            del joints.lines[name]
        elif was_first:
            heirs[next(iter(line))] = None
    return heirs


def _end(core: Core, claim: Claim) -> None:
    joints = core.state.joints
    joint = joints.claims.pop(claim, None)
    if joint is None:
        return
    if joint.standing.request:
        core.to_client(claim.client, answer(joint.standing.request, False))
    _grant(core, _leave(joints, claim, joint.holding or joint.names))


HANDLERS = Handlers(
    from_client={AcquireJointly: on_acquire_jointly, ReleaseJointly: on_release_jointly},
    client_gone=drop_claims,
    invariant=lines_are_sound,
)
