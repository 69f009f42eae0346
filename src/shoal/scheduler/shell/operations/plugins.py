"""Plugins that clients bring and take away again."""

from __future__ import annotations

from typing import Final

from shoal.protocol.answers import answer
from shoal.protocol.messages import Message
from shoal.protocol.plugins import RegisterPlugin, UnregisterPlugin
from shoal.scheduler.shell.host import Host, Operations


async def on_register_plugin(host: Host, call: RegisterPlugin) -> Message:
    """Have it live in the scheduler, or in all workers or nannies; answered once it does."""
    return answer(call.request, await host.register_plugin_of(call.kind, call.plugin))


async def on_unregister_plugin(host: Host, call: UnregisterPlugin) -> Message:
    """Remove it; answered once it is gone everywhere."""
    return answer(call.request, await host.unregister_plugin_of(call.kind, call.name))


OPERATIONS: Final[Operations] = {
    RegisterPlugin: on_register_plugin,
    UnregisterPlugin: on_unregister_plugin,
}
