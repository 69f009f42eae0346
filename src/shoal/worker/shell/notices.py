"""What a worker is told beside its tasks and does not answer: one row in a table for each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from shoal.protocol.actors import ActorsLost
from shoal.protocol.logs import ForwardLogsOf
from shoal.protocol.membership import LeavingChanged
from shoal.protocol.messages import AskHearing, Message
from shoal.protocol.plugins import PluginsComing
from shoal.worker.shell.context import Host
from shoal.worker.shell.plugging import on_plugins_coming


def on_forward_logs_of(worker: Host, message: ForwardLogsOf) -> None:
    """Tell records of a logger under a topic, or tell them no more."""
    worker.log_forwarding.forward(message.topic, message.logger, message.level)


def on_actors_lost(worker: Any, message: ActorsLost) -> None:
    """A peer that had actors is given up: calls to them end, whether its connection has or not."""
    worker.feed.exchange.forget(message.address, message.why)


def on_leaving_changed(worker: Any, message: LeavingChanged) -> None:
    """The scheduler gives it nothing more, or does so again: programs see that by its status."""
    worker.is_leaving = message.is_leaving


def on_ask_hearing(worker: Any, message: AskHearing) -> None:
    """The scheduler wants to know whether all that it has said has come."""
    worker.feed.link.heard = message.number


NOTICES: Final[dict[type[Message], Callable[[Any, Any], None]]] = {
    ActorsLost: on_actors_lost,
    AskHearing: on_ask_hearing,
    ForwardLogsOf: on_forward_logs_of,
    LeavingChanged: on_leaving_changed,
    PluginsComing: on_plugins_coming,
}
"""Message → what hears of it; it runs on the worker's loop, and must not wait."""
