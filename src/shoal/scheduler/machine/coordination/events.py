"""Events: set or not, and who waits until one is."""

from collections.abc import Iterator

from shoal.protocol.answers import answer
from shoal.protocol.coordination import AwaitEvent, EndWait, IsEventSet, SetEvent
from shoal.protocol.framing import ProtocolError
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.exchanges import Event
from shoal.scheduler.model.locks import Claim, Standing
from shoal.scheduler.model.state import SchedulerState


def on_await_event(core: Core, client: Client, call: AwaitEvent) -> None:
    """Answer now if the event is set, else once it is.

    Raises:
        ProtocolError: the client uses the number of a claim to it that has not ended.
    """
    events = core.state.events
    event = events.get(call.name)
    claim = Claim(client, call.claim)
    if event is None:
        event = events[call.name] = Event()
    if claim in event.waiting:
        raise ProtocolError("AwaitEvent uses the number of a claim that has not ended")
    if event.is_set:
        core.to_client(client, answer(call.request, True))
    else:
        event.waiting[claim] = Standing(core.now, call.by, call.request)


def on_end_wait(core: Core, client: Client, message: EndWait) -> None:
    """Wait no longer; nothing happens if that was answered."""
    event = core.state.events.get(message.name)
    if event is not None:
        _end(core, message.name, event, Claim(client, message.claim))


def on_set_event(core: Core, client: Client, call: SetEvent) -> None:
    """Set it, and go on with who waits for that; or clear it."""
    events = core.state.events
    event = events.get(call.name)
    if event is None and call.is_set:
        event = events[call.name] = Event()
    if event is not None:
        event.is_set = call.is_set
        if call.is_set:
            for claim, standing in event.waiting.items():
                core.to_client(claim.client, answer(standing.request, True))
            event.waiting.clear()
        _forget_if_idle(core, call.name, event)
    core.to_client(client, answer(call.request, None))


def on_is_event_set(core: Core, client: Client, call: IsEventSet) -> None:
    """Whether it is set."""
    event = core.state.events.get(call.name)
    core.to_client(client, answer(call.request, event is not None and event.is_set))


def drop_waits(core: Core, client: Client) -> None:
    """The client has gone: it waits no more; what it has set stays set.  Cost: O(events)."""
    for name, event in list(core.state.events.items()):
        for claim in [claim for claim in event.waiting if claim.client is client]:
            _end(core, name, event, claim)


def have_reasons(state: SchedulerState) -> Iterator[str]:
    """Every event that is known is set or waited for, by clients that are there."""
    for name, event in state.events.items():
        if event.is_set == bool(event.waiting):
            yield f"the event {name!r} is {'' if event.is_set else 'not '}set: {event}"
        for claim in event.waiting:
            if state.clients.get(claim.client.id) is not claim.client:
                yield f"the event {name!r} is waited for by {claim.client}, which has gone"


def _end(core: Core, name: str, event: Event, claim: Claim) -> None:
    standing = event.waiting.pop(claim, None)
    if standing is not None:
        core.to_client(claim.client, answer(standing.request, False))
        _forget_if_idle(core, name, event)


def _forget_if_idle(core: Core, name: str, event: Event) -> None:
    if not event.is_set and not event.waiting:
        del core.state.events[name]


HANDLERS = Handlers(
    from_client={
        AwaitEvent: on_await_event,
        EndWait: on_end_wait,
        SetEvent: on_set_event,
        IsEventSet: on_is_event_set,
    },
    client_gone=drop_waits,
    invariant=have_reasons,
)
