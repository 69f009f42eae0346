"""Queues: values that some put and others take, each taken once, in their order.

What was taken is on its way until the taker says that it has it.  If he goes, or does not want it
any more, it is back at the front; so a value is neither lost with a connection nor had twice.
"""

from collections.abc import Iterator

from shoal.ids import Key
from shoal.protocol.answers import answer
from shoal.protocol.coordination import (
    CloseQueue,
    EndPut,
    EndTake,
    PutInQueue,
    QueueSize,
    TakeFromQueue,
)
from shoal.protocol.framing import ProtocolError
from shoal.protocol.keys import to_text
from shoal.scheduler.machine.coordination.items import let_go, new_item, shared
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.exchanges import Putting, Queue, Taking
from shoal.scheduler.model.locks import Claim, Standing
from shoal.scheduler.model.state import SchedulerState


def keeper_of(name: str) -> str:
    """In whose name the futures in a queue are kept."""
    return f"queue-{to_text(Key(name))}"


def on_put_in_queue(core: Core, client: Client, call: PutInQueue) -> None:
    """Add the value now if there is room, else once there is.

    Raises:
        ProtocolError: the client uses the number of a claim to it that has not ended.
    """
    queue = _used(core, client, call)
    claim = Claim(client, call.claim)
    if claim in queue.putting:
        raise ProtocolError("PutInQueue uses the number of a claim that has not ended")
    item = new_item(core, keeper_of(call.name), call, client)
    if item is None:
        return
    queue.putting[claim] = Putting(item, Standing(core.now, call.by, call.request))
    _settle(core, queue)


def on_end_put(core: Core, client: Client, message: EndPut) -> None:
    """If the value still waits for room, it is not put."""
    queue = core.state.queues.get(message.name)
    if queue is not None:
        _end_put(core, message.name, queue, Claim(client, message.claim))


def on_take_from_queue(core: Core, client: Client, call: TakeFromQueue) -> None:
    """Answer now if there are enough values, else once there are.

    Raises:
        ProtocolError: the client uses the number of a claim to it that has not ended.
    """
    queue = _used(core, client, call)
    claim = Claim(client, call.claim)
    if claim in queue.taking or claim in queue.taken:
        raise ProtocolError("TakeFromQueue uses the number of a claim that has not ended")
    if call.count < 0:
        raise ProtocolError("TakeFromQueue wants less than nothing")
    taking = Taking(call.count, Standing(core.now, call.by, call.request))
    if call.count:
        queue.taking[claim] = taking
    else:
        _hand_over(core, queue, claim, taking, len(queue.items))
    _settle(core, queue)


def on_end_take(core: Core, client: Client, message: EndTake) -> None:
    """The values were received, and what is in them may be let go; or they were not."""
    queue = core.state.queues.get(message.name)
    claim = Claim(client, message.claim)
    if queue is None:
        return
    if message.is_received:
        for item in queue.taken.pop(claim, ()):
            let_go(core, keeper_of(message.name), item.wants)
    else:
        _end_takes(core, queue, [claim])
    _forget_if_idle(core, message.name, queue)


def on_queue_size(core: Core, client: Client, call: QueueSize) -> None:
    """How many values are in it."""
    queue = core.state.queues.get(call.name)
    core.to_client(client, answer(call.request, 0 if queue is None else len(queue.items)))


def on_close_queue(core: Core, client: Client, message: CloseQueue) -> None:
    """The queue goes, with what is in it, unless another client uses it too."""
    queue = core.state.queues.get(message.name)
    if queue is None:
        return
    queue.users.pop(client, None)
    others = [claim.client for claim in (*queue.putting, *queue.taking, *queue.taken)]
    if queue.users or any(other is not client for other in others):
        return
    for claim in list(queue.putting):
        _end_put(core, message.name, queue, claim)
    _end_takes(core, queue, list(queue.taking))
    items = list(queue.items)
    queue.items.clear()
    for item in items:
        let_go(core, keeper_of(message.name), item.wants)
    _forget_if_idle(core, message.name, queue)  # what is on its way is still to be received


def drop_claims(core: Core, client: Client) -> None:
    """The client has gone: what it had not received is there again.  Cost: O(queues + claims).

    What is in a queue stays for others to come; a queue with nothing in it is forgotten.
    """
    for name, queue in list(core.state.queues.items()):
        queue.users.pop(client, None)
        for claim in [claim for claim in queue.putting if claim.client is client]:
            _end_put(core, name, queue, claim)
        _end_takes(core, queue, [c for c in (*queue.taking, *queue.taken) if c.client is client])
        _forget_if_idle(core, name, queue)


def move_on(state: SchedulerState) -> Iterator[str]:
    """Nobody waits for what is there, and whoever waits is connected."""
    for name, queue in state.queues.items():
        for claim in (*queue.putting, *queue.taking, *queue.taken, *map(_as_claim, queue.users)):
            if state.clients.get(claim.client.id) is not claim.client:
                yield f"the queue {name!r} is used by {claim.client}, which has gone"
        if queue.putting and len(queue.items) < _room(queue):
            yield f"the queue {name!r} has room, and {len(queue.putting)} wait for some"
        if queue.taking and len(queue.items) >= next(iter(queue.taking.values())).nvalues:
            yield f"the queue {name!r} has {len(queue.items)} values, and {queue.taking} waits"
        if queue.is_idle and not queue.users:
            yield f"the queue {name!r} is known, and nobody has to do with it"


def _as_claim(client: Client) -> Claim:
    return Claim(client, 0)


def _used(core: Core, client: Client, call: PutInQueue | TakeFromQueue) -> Queue:
    """The queue, made if it is new, with a limit if somebody has named one."""
    queue = core.state.queues.get(call.name)
    if queue is None:
        queue = core.state.queues[call.name] = Queue()
    queue.size_max = queue.size_max or max(0, call.size_max)
    queue.users[client] = None
    return queue


def _room(queue: Queue) -> float:
    """How many values may be in it: as many as the next taker wants, in any case."""
    if not queue.size_max:
        return float("inf")
    wanted = next(iter(queue.taking.values())).nvalues if queue.taking else 0
    return max(queue.size_max, wanted)


def _settle(core: Core, queue: Queue) -> None:
    """Let values in and out, until nobody can go on."""
    while True:
        if queue.putting and len(queue.items) < _room(queue):
            claim = next(iter(queue.putting))
            item, standing = queue.putting.pop(claim)
            queue.items.append(item)
            core.to_client(claim.client, answer(standing.request, True))
            continue
        if not queue.taking:
            return
        claim, taking = next(iter(queue.taking.items()))
        if len(queue.items) < taking.nvalues:
            return
        del queue.taking[claim]
        _hand_over(core, queue, claim, taking, taking.nvalues)


def _hand_over(core: Core, queue: Queue, claim: Claim, taking: Taking, count: int) -> None:
    items = [queue.items.popleft() for _ in range(count)]
    if items:
        queue.taken[claim] = items
    core.to_client(claim.client, answer(taking.standing.request, [shared(item) for item in items]))


def _forget_if_idle(core: Core, name: str, queue: Queue) -> None:
    if queue.is_idle and not queue.users:
        core.state.queues.pop(name, None)


def _end_put(core: Core, name: str, queue: Queue, claim: Claim) -> None:
    putting = queue.putting.pop(claim, None)
    if putting is not None:
        let_go(core, keeper_of(name), putting.item.wants)
        core.to_client(claim.client, answer(putting.standing.request, False))


def _end_takes(core: Core, queue: Queue, claims: list[Claim]) -> None:
    """What was on its way is back at the front, in its order, before others go on; waits are over.

    `claims`: in the order of their taking.
    """
    for claim in reversed(claims):
        taking = queue.taking.pop(claim, None)
        if taking is not None:
            core.to_client(claim.client, answer(taking.standing.request, []))
        queue.items.extendleft(reversed(queue.taken.pop(claim, [])))
    _settle(core, queue)


HANDLERS = Handlers(
    from_client={
        PutInQueue: on_put_in_queue,
        EndPut: on_end_put,
        TakeFromQueue: on_take_from_queue,
        EndTake: on_end_take,
        QueueSize: on_queue_size,
        CloseQueue: on_close_queue,
    },
    client_gone=drop_claims,
    invariant=move_on,
)
