"""Plugins of a nanny, which outlive its worker's process, and what else a scheduler asks of it.

A nanny listens to nobody: what is asked of it comes by its worker, over the channel to that one's
process.  A plugin that wants the worker started anew is set up first, and the scheduler, which is
told so, sends the worker away; whoever takes its place starts in what the plugin has made ready.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

from shoal.comms.cancellation import is_our_cancellation
from shoal.comms.functions import call_function
from shoal.nanny.logs import on_logs
from shoal.observe.errors import PluginUnknown
from shoal.observe.hooks import NannyPlugin
from shoal.observe.hosted import HostedPlugins
from shoal.protocol import payload
from shoal.protocol.exceptions import to_failure
from shoal.protocol.plugins import RESTARTS
from shoal.protocol.running import Outcome

logger = logging.getLogger("shoal.nanny")


def plugins_of(nanny: Any) -> HostedPlugins:
    """The plugins of a nanny, none yet, which are given that one."""
    return HostedPlugins("nanny", nanny, base=NannyPlugin, hooks=(), logger=logger)


async def on_plugin_add(nanny: Any, argument: bytes) -> Outcome:
    """Set up what the scheduler has sent; RESTARTS if the worker has to be started anew."""
    sent: Any = payload.load(argument)
    name, pickled, idempotent = sent
    plugin = await nanny.hooks.add_sent(name, pickled, idempotent=idempotent)
    if not getattr(plugin, "restart", False):
        return Outcome()
    nanny.expect_restart()
    return Outcome(RESTARTS)


async def on_plugin_remove(nanny: Any, argument: bytes) -> Outcome:
    """Tear a plugin down, if it is there."""
    try:
        await nanny.hooks.remove(argument.decode())
    except PluginUnknown:
        logger.debug("No plugin %r is to be removed", argument)
    return Outcome()


async def on_run(nanny: Any, argument: bytes) -> Outcome:
    """Call a client's function here."""
    return await call_function(argument, {"dask_worker": nanny})


async def on_call(nanny: Any, argument: bytes) -> Outcome:
    """Call what the nanny has under a name."""
    name, arguments = cast(tuple[str, bytes], payload.load(argument))
    outcome: Outcome = await nanny.answer_by_name(name, arguments)
    return outcome


ASKED: Final[dict[str, Callable[[Any, bytes], Awaitable[Outcome]]]] = {
    "plugin-add": on_plugin_add,
    "plugin-remove": on_plugin_remove,
    "run": on_run,
    "call": on_call,
    "logs": on_logs,
}
"""What a nanny can be asked to do -> what does it."""


async def answer(nanny: Any, operation: str, argument: bytes) -> Outcome:
    """Do what was asked; whatever it raises is the outcome."""
    try:
        return await ASKED[operation](nanny, argument)
    except BaseException as error:
        if is_our_cancellation(error):
            raise
        return Outcome(failure=to_failure(error, worker=nanny.worker_address))
