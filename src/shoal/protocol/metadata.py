"""Values that clients leave with the scheduler by nested keys, and how tasks have ended."""

from shoal.ids import Key
from shoal.protocol.messages import Message
from shoal.protocol.subject import Subject

EMPTY: bytes = b""
"""In place of a pickled value: a mapping without keys."""

Leaf = tuple[list[Key], bytes]
"""Keys on the way to a value, and that value, pickled or EMPTY."""


class SetMetadata(Message, frozen=True, tag=290):
    """Put a value at the end of a path of keys; a mapping comes as its leaves.

    It takes the place of what was there, and of values on the way that are no mappings.
    """

    request: int
    path: list[Key]
    leaves: list[Leaf]  # their keys go on from `path`


class GetMetadata(Message, frozen=True, tag=291):
    """The leaves at the end of a path; None if it leads nowhere."""

    request: int
    path: list[Key]


class CollectTasks(Message, frozen=True, tag=292):
    """From now on note how those tasks end that begin from now on."""

    request: int
    name: str  # of the collection, unique to the client


class CollectedTasks(Message, frozen=True, tag=293):
    """End a collection: key -> `memory` or `erred`, of tasks that began and ended since."""

    request: int
    name: str


SUBJECT = Subject(
    from_client={
        SetMetadata: None,
        GetMetadata: list[Leaf] | None,
        CollectTasks: None,
        CollectedTasks: dict[Key, str],
    },
)
