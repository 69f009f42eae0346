"""Operations that clients call by name."""

from __future__ import annotations

from typing import Final

from shoal.protocol.answers import answer
from shoal.protocol.messages import Message
from shoal.protocol.named import CallNamed
from shoal.scheduler.shell.host import Host, Operations


async def on_call_named(host: Host, call: CallNamed) -> Message:
    """Call what the scheduler has under a name."""
    return answer(call.request, await host.answer_by_name(call.name, call.arguments))


OPERATIONS: Final[Operations] = {CallNamed: on_call_named}
