"""Channels: what is published is told to whoever has subscribed by then, and kept for nobody."""

from collections.abc import Iterator

from shoal.protocol.coordination import Publish, Published, Subscribe, Unsubscribe
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.exchanges import Channel
from shoal.scheduler.model.locks import Claim, Standing
from shoal.scheduler.model.state import SchedulerState


def on_subscribe(core: Core, client: Client, message: Subscribe) -> None:
    """Tell this client, once for each of its subscriptions."""
    channel = core.state.channels.get(message.name)
    if channel is None:
        channel = core.state.channels[message.name] = Channel()
    channel.subscribers[Claim(client, message.claim)] = Standing(core.now)


def on_unsubscribe(core: Core, client: Client, message: Unsubscribe) -> None:
    """Tell it no more; nothing happens if it isn't."""
    channel = core.state.channels.get(message.name)
    if channel is not None:
        _end(core, message.name, channel, Claim(client, message.claim))


def on_publish(core: Core, client: Client, message: Publish) -> None:
    """Tell all subscribers.  Cost: O(those)."""
    channel = core.state.channels.get(message.name)
    if channel is not None:
        for claim in channel.subscribers:
            core.to_client(claim.client, Published(claim.number, message.value))


def drop_subscriptions(core: Core, client: Client) -> None:
    """The client has gone.  Cost: O(channels + subscriptions)."""
    for name, channel in list(core.state.channels.items()):
        for claim in [claim for claim in channel.subscribers if claim.client is client]:
            _end(core, name, channel, claim)


def have_subscribers(state: SchedulerState) -> Iterator[str]:
    """Every channel that is known has subscribers, which are connected."""
    for name, channel in state.channels.items():
        if not channel.subscribers:
            yield f"the channel {name!r} is known, and has no subscribers"
        for claim in channel.subscribers:
            if state.clients.get(claim.client.id) is not claim.client:
                yield f"the channel {name!r} has the subscriber {claim.client}, which has gone"


def _end(core: Core, name: str, channel: Channel, claim: Claim) -> None:
    channel.subscribers.pop(claim, None)
    if not channel.subscribers:
        del core.state.channels[name]


HANDLERS = Handlers(
    from_client={Subscribe: on_subscribe, Unsubscribe: on_unsubscribe, Publish: on_publish},
    client_gone=drop_subscriptions,
    invariant=have_subscribers,
)
