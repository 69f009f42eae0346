"""What workers tell of the ways between them."""

from collections.abc import Iterator

from shoal.protocol.framing import ProtocolError
from shoal.protocol.placement import TransfersGauged
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Worker
from shoal.scheduler.model.state import SchedulerState


def on_transfers_gauged(core: Core, worker: Worker, message: TransfersGauged) -> None:
    """Learn how fast results travel; of peers that have gone it is not known how near they were."""
    if not len(message.peers) == len(message.nbytes) == len(message.seconds):
        raise ProtocolError("TransfersGauged has columns of different lengths")
    state = core.state
    columns = zip(message.peers, message.nbytes, message.seconds, strict=True)
    for address, nbytes, seconds in columns:
        peer = state.workers.get(address)
        if peer is not None:
            is_near = peer.host == worker.host
            state.ways.learn(is_near=is_near, nbytes=nbytes, seconds=seconds)


def ways_are_used(state: SchedulerState) -> Iterator[str]:
    """Whatever is on its way to somebody is there for a task that is placed there, and needs it."""
    nsent = 0
    for result, takers in state.ways.moving.items():
        if not takers:
            yield f"{result!r} is on its way to nobody"
        for worker, coming in takers.items():
            nsent += coming.source is not None
            if not coming.tasks:
                yield f"{result!r} is on its way to {worker} for nothing"
            for task in coming.tasks:
                if task.worker is not worker or result not in task.dependencies:
                    yield f"{result!r} is on its way to {worker} for {task!r}, which is elsewhere"
    for result in state.ways.free:
        if result not in state.ways.moving:
            yield f"{result!r} moves no more, and who could send it is still noted"
    if sum(state.ways.sending.values()) != nsent:
        yield f"{nsent} large results were asked for, and other numbers are noted"


HANDLERS = Handlers(
    from_worker={TransfersGauged: on_transfers_gauged},
    invariant=ways_are_used,
)
