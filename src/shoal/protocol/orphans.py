"""What workers kept from another life of the scheduler, and what becomes of it: known by key.

A worker that registers says in its inventory what it holds, and what it executes.  Where the
numbers mean nothing any more, because the scheduler has come back without its memory, each is an
orphan: until a client defines a task of its key, which then takes it up.

Tags 450 to 459; 455 to 459 are free.
"""

from shoal.ids import Key, TaskId
from shoal.protocol.messages import Message
from shoal.protocol.subject import UNANSWERED, Subject


class AdoptReplicas(Message, frozen=True, tag=450):
    """From now on these results have these numbers; answered for each key, once, by ReplicasAdopted
    or OrphansGone.  Columns of one length."""

    keys: list[Key]
    tasks: list[TaskId]


class FreeOrphans(Message, frozen=True, tag=451):
    """Nobody has asked for these, or others have them: drop them, also those that execute."""

    keys: list[Key]


class ReplicasAdopted(Message, frozen=True, tag=452):
    """These are here under the numbers that they were given.  Columns of one length."""

    keys: list[Key]
    tasks: list[TaskId]
    nbytes: list[int]
    values: list[bytes | None]  # pickled, if small
    kinds: list[str]  # "module.qualname" of the type, where there is no value
    actors: list[Key] = []  # of these, whose value is the proxy of an actor that lives here


class OrphanFinished(Message, frozen=True, tag=453):
    """A run of another life of the scheduler has ended well; the worker keeps its result."""

    key: Key
    nbytes: int


class OrphansGone(Message, frozen=True, tag=454):
    """The worker neither holds nor executes these, or no longer: a run may have failed."""

    keys: list[Key]


SUBJECT = Subject(
    from_worker={
        ReplicasAdopted: UNANSWERED,
        OrphanFinished: UNANSWERED,
        OrphansGone: UNANSWERED,
    },
    to_worker={AdoptReplicas: UNANSWERED, FreeOrphans: UNANSWERED},
)
