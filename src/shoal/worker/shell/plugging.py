"""What the scheduler asks of a worker about plugins, its own and those of its nanny."""

from __future__ import annotations

from typing import Any, Final

from shoal.observe.errors import NoNannyHere, PluginUnknown
from shoal.protocol.exceptions import to_failure
from shoal.protocol.messages import Failure, Message
from shoal.protocol.plugins import AddPlugins, AskNanny, PluginsComing, RemovePlugin
from shoal.protocol.running import Outcome


async def on_add_plugins(worker: Any, call: AddPlugins) -> dict[str, Failure]:
    """Set up what the scheduler has sent."""
    failures: dict[str, Failure] = {}
    for part in call.plugins:
        try:
            await worker.hooks.add_sent(part.name, part.payload, idempotent=part.idempotent)
        except Exception as error:
            failures[part.name] = to_failure(error, worker=worker.address)
    return failures


async def on_remove_plugin(worker: Any, call: RemovePlugin) -> Failure | None:
    """Tear a plugin down, if it is there."""
    try:
        await worker.hooks.remove(call.name)
    except PluginUnknown:
        return None
    except Exception as error:
        return to_failure(error, worker=worker.address)
    return None


async def on_ask_nanny(worker: Any, call: AskNanny) -> Outcome:
    """Pass a question on, and its answer back."""
    if worker.ask_nanny is None:
        raise NoNannyHere(worker.address)
    outcome: Outcome = await worker.ask_nanny(call.operation, call.argument)
    return outcome


def on_plugins_coming(worker: Any, message: PluginsComing) -> None:
    """The scheduler has heard of us, and takes the time that plugins need."""
    worker.wait_for_plugins()


OPERATIONS: Final[dict[type[Message], Any]] = {
    AddPlugins: on_add_plugins,
    RemovePlugin: on_remove_plugin,
    AskNanny: on_ask_nanny,
}
