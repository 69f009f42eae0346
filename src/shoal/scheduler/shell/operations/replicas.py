"""The rounds that drop copies which nobody needs, as clients ask for them."""

from __future__ import annotations

from typing import Final

from shoal.protocol.answers import answer
from shoal.protocol.messages import Message
from shoal.protocol.replicas import SteerRounds
from shoal.scheduler.shell.host import Host, Operations


async def on_steer_rounds(host: Host, call: SteerRounds) -> Message:
    """Begin them, end them, have one, or say whether there are any.

    Raises:
        ValueError: nothing of that name can be done.
    """
    host.rounds.amm_handler(call.word)
    return answer(call.request, bool(host.rounds.running))


OPERATIONS: Final[Operations] = {SteerRounds: on_steer_rounds}
