"""Operations that are called by name: those that services have, and those that programs add.

Free tags: 301 to 304.
"""

from shoal.protocol.messages import Message
from shoal.protocol.running import Outcome
from shoal.protocol.subject import Subject


class CallNamed(Message, frozen=True, tag=300):
    """Call what the service has under a name; the answer is its value, or what it has raised.

    Its arguments are code like those of RunOnScheduler, and are opened where the operation is.
    """

    request: int
    name: str
    arguments: bytes  # pickled keyword arguments


SUBJECT = Subject(
    from_client={CallNamed: Outcome},
    to_worker={CallNamed: Outcome},
)
