"""Who takes on what: all parts of the machine, and what follows from their tables.

A new part is a file with a HANDLERS, and a row here.  When somebody comes or goes, the parts are
told in this order.
"""

from collections.abc import Callable, Iterator
from typing import Final

from shoal.protocol.messages import Message
from shoal.scheduler.machine import (
    actors,
    circles,
    copying,
    demands,
    gauging,
    journaling,
    keeping,
    limiting,
    nested,
    on_client,
    on_dataset,
    on_detached,
    on_explain,
    on_holding,
    on_looking,
    on_memory,
    on_metadata,
    on_question,
    on_scaling,
    on_scatter,
    on_slot,
    on_topic,
    on_worker,
    orphans,
    pausing,
    permanent_check,
    quarantine,
    recovering,
    recycling,
    reducing,
    restarting,
    retiring,
    running_again,
    sharing,
    shuffling,
    staying,
    stranding,
    suspecting,
    unmet,
    waiting_calls,
)
from shoal.scheduler.machine.coordination import (
    channels,
    describing,
    events,
    joints,
    locks,
    queues,
    variables,
)
from shoal.scheduler.machine.core import Announced
from shoal.scheduler.machine.handlers import Handler, Handlers
from shoal.scheduler.model.state import SchedulerState

PARTS: Final[tuple[Handlers, ...]] = (
    nested.HANDLERS,  # before what a client that goes wanted is let go of
    on_worker.HANDLERS,
    orphans.HANDLERS,
    recovering.HANDLERS,
    on_slot.HANDLERS,
    running_again.HANDLERS,
    suspecting.HANDLERS,
    quarantine.HANDLERS,
    permanent_check.HANDLERS,
    staying.HANDLERS,
    on_memory.HANDLERS,
    pausing.HANDLERS,
    on_client.HANDLERS,
    sharing.HANDLERS,
    on_question.HANDLERS,
    on_explain.HANDLERS,
    on_scatter.HANDLERS,
    on_looking.HANDLERS,
    waiting_calls.HANDLERS,
    copying.HANDLERS,
    reducing.HANDLERS,
    demands.HANDLERS,
    gauging.HANDLERS,
    limiting.HANDLERS,
    on_holding.HANDLERS,
    actors.HANDLERS,
    retiring.HANDLERS,
    recycling.HANDLERS,
    restarting.HANDLERS,
    stranding.HANDLERS,
    unmet.HANDLERS,
    circles.HANDLERS,
    keeping.HANDLERS,
    journaling.HANDLERS,
    on_detached.HANDLERS,
    on_dataset.HANDLERS,
    shuffling.HANDLERS,
    on_metadata.HANDLERS,
    on_topic.HANDLERS,
    locks.HANDLERS,
    joints.HANDLERS,
    events.HANDLERS,
    queues.HANDLERS,
    variables.HANDLERS,
    channels.HANDLERS,
    describing.HANDLERS,
    on_scaling.HANDLERS,
)

FROM_WORKER: Final[dict[type[Message], Handler]] = {
    kind: handler for part in PARTS for kind, handler in part.from_worker.items()
}

FROM_CLIENT: Final[dict[type[Message], Handler]] = {
    kind: handler for part in PARTS for kind, handler in part.from_client.items()
}

ANNOUNCED: Final = Announced(
    worker_joined=tuple(part.worker_joined for part in PARTS if part.worker_joined is not None),
    worker_gone=tuple(part.worker_gone for part in PARTS if part.worker_gone is not None),
    client_joined=tuple(part.client_joined for part in PARTS if part.client_joined is not None),
    client_gone=tuple(part.client_gone for part in PARTS if part.client_gone is not None),
    woken=tuple(part.woken for part in PARTS if part.woken is not None),
)

INVARIANTS: Final[tuple[Callable[[SchedulerState], Iterator[str]], ...]] = tuple(
    part.invariant for part in PARTS if part.invariant is not None
)
