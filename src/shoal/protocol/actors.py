"""Calls to actors: objects that live on one worker, made there by a task, and answer one by one.

Free tags: 248 and 249.
"""

from shoal.ids import ClientTaskId, Key, RunId
from shoal.protocol.messages import Failure, Message
from shoal.protocol.subject import UNANSWERED, Subject


class CallActor(Message, frozen=True, tag=240):
    """Call a method of an actor; answered by ActorReply.  Large arguments are out of band.

    Calls of one connection begin in the order in which they come.
    """

    request: int
    key: Key  # of the task that made the actor
    run: RunId  # that made it: another actor under the same key is not meant; 0: whichever is there
    method: str
    arguments: bytes  # pickled (args, kwargs)
    separate_thread: bool = True  # False: on the worker's loop, beside whatever the actor does


class ReadActor(Message, frozen=True, tag=241):
    """Read an attribute of an actor, at once, whatever it does; answered by ActorReply."""

    request: int
    key: Key
    run: RunId
    name: str


class ActorReply(Message, frozen=True, tag=242):
    """What a method returned, or an attribute is; its large buffers are out of band."""

    request: int
    value: bytes  # pickle stream that refers to the buffers


class CallActorThroughScheduler(Message, frozen=True, tag=243):
    """As CallActor or ReadActor, for a client that can't reach the actor's worker."""

    request: int
    key: Key
    run: RunId
    name: str  # of the method, or of the attribute
    arguments: bytes | None = None  # pickled, nothing out of band; None: an attribute is read
    separate_thread: bool = True


class ExplainActor(Message, frozen=True, tag=244):
    """The actor's worker did not answer a client: raises why, once that is known.

    Answered with nothing if the actor is there as before.
    """

    request: int
    key: Key


class PromiseValue(Message, frozen=True, tag=245):
    """The client will have this value later, and wants it from now on; tasks may depend on it.

    It comes as a scattered one does, under the same number, or BreakPromise says why not.
    """

    task: ClientTaskId
    key: Key


class BreakPromise(Message, frozen=True, tag=246):
    """A promised value will not come: what depends on it fails with this."""

    task: ClientTaskId
    failure: Failure


class ActorsLost(Message, frozen=True, tag=247):
    """The worker at `address` had actors and is given up: nobody need wait for its answers.

    Its connections may live on, as those of a process that was stopped do.
    """

    address: str
    why: str  # a clause


SUBJECT = Subject(
    from_client={
        CallActorThroughScheduler: ActorReply,
        ExplainActor: None,
        PromiseValue: UNANSWERED,
        BreakPromise: UNANSWERED,
    },
    to_client={ActorReply: UNANSWERED, ActorsLost: UNANSWERED},
    to_worker={ActorsLost: UNANSWERED},
    from_peer={CallActor: ActorReply, ReadActor: ActorReply},
    to_peer={ActorReply: UNANSWERED},
)
