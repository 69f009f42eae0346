"""What ends a call: exactly one Answer or Refusal with its number, on the same connection.

Which type the value of an answer has is said beside its call, in the table of the call's subject.
Free tags: 102 to 109.
"""

import msgspec

from shoal.protocol.messages import Failure, Message
from shoal.protocol.subject import UNANSWERED, Subject


class Answer(Message, frozen=True, tag=100):
    """The value a call asked for."""

    request: int
    value: msgspec.Raw = msgspec.Raw(b"\xc0")  # msgpack; of the type in ANSWERS


class Refusal(Message, frozen=True, tag=101):
    """The call failed, and why."""

    request: int
    failure: Failure


_encoder = msgspec.msgpack.Encoder()


def answer(request: int, value: object) -> Answer:
    """An Answer with `value` (builtin types or Parts) encoded."""
    return Answer(request, msgspec.Raw(_encoder.encode(value)))


SUBJECT = Subject(
    to_client={Answer: UNANSWERED, Refusal: UNANSWERED},
    from_worker={Answer: UNANSWERED, Refusal: UNANSWERED},
    to_worker={Answer: UNANSWERED, Refusal: UNANSWERED},
    to_peer={Answer: UNANSWERED, Refusal: UNANSWERED},
)
