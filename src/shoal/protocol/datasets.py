"""Values that are published under a name, for all clients of a cluster.

Free tags: none; 280 to 299 are shared with `topics`, `metadata` and `logs`.
"""

from shoal.ids import ClientTaskId, Key
from shoal.protocol.messages import Message, Part
from shoal.protocol.subject import Subject


class PublishDatasets(Message, frozen=True, tag=280):
    """Keep these values, and the results that they refer to, until they are unpublished.

    Answered by the first of the names that is taken, and then nothing has changed; else by None.
    """

    request: int
    names: list[Key]  # canonical, as those of tasks
    payloads: list[bytes]  # pickled values
    tasks: list[list[ClientTaskId]]  # the client's numbers of the results that each refers to
    override: bool = False  # taken names get the new value


class GetDatasets(Message, frozen=True, tag=281):
    """The values of these names, in their order; None for one that is not published.

    In the same step the client wants what they refer to, under the numbers in the answer, which it
    releases by ReleaseTasks as soon as it has futures of its own.
    """

    request: int
    names: list[Key]


class Published(Part, frozen=True):
    """One value of GetDatasets."""

    payload: bytes
    wants: list[ClientTaskId]  # below zero, so that they are none of the client's own


class ListDatasets(Message, frozen=True, tag=282):
    """All names that are published."""

    request: int


class UnpublishDatasets(Message, frozen=True, tag=283):
    """Let go of these; answered by those that were published."""

    request: int
    names: list[Key]


SUBJECT = Subject(
    from_client={
        PublishDatasets: Key | None,
        GetDatasets: list[Published | None],
        ListDatasets: list[Key],
        UnpublishDatasets: list[Key],
    },
)
