"""What clients want done about the rounds that drop copies of results which nobody needs.

Tags 360 to 369.
"""

from typing import Final

from shoal.protocol.messages import Message
from shoal.protocol.subject import Subject

START: Final = "start"
STOP: Final = "stop"
RUN_ONCE: Final = "run_once"
RUNNING: Final = "running"


class SteerRounds(Message, frozen=True, tag=360):
    """Begin, end or have one of the rounds over copies; answered with whether there are any."""

    request: int
    word: str  # one of those above


SUBJECT = Subject(from_client={SteerRounds: bool})
