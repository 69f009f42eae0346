"""All that is said, by direction: one union of messages for each, made of the subjects' tables.

A new subject is a file with a SUBJECT, and a row here.  Tags that are free, for subjects to come
(each file of a subject that is here names its own):

    200 to 239  coordination        280 to 299  metadata, topics, logs
    240 to 249  actors              300 to 309  named operations, servers
    250 to 259  plugins             330 to 339  descriptions of tasks, replay
    260 to 279  the cluster's memory and members: replicate, rebalance, retire, restart
"""

from typing import Any, Final, Union

import msgspec

from shoal.protocol import (
    actors,
    answers,
    coordination,
    datasets,
    detached,
    holding,
    limits,
    logs,
    looking,
    membership,
    memory,
    messages,
    metadata,
    named,
    orphans,
    placement,
    plugins,
    questions,
    replicas,
    running,
    scaling,
    shuffles,
    slots,
    topics,
    transfers,
)
from shoal.protocol.answers import Answer
from shoal.protocol.messages import Message
from shoal.protocol.subject import UNANSWERED, Said, Subject

SUBJECTS: Final[tuple[Subject, ...]] = (
    messages.SUBJECT,
    answers.SUBJECT,
    questions.SUBJECT,
    transfers.SUBJECT,
    running.SUBJECT,
    membership.SUBJECT,
    looking.SUBJECT,
    holding.SUBJECT,
    coordination.SUBJECT,
    plugins.SUBJECT,
    datasets.SUBJECT,
    topics.SUBJECT,
    metadata.SUBJECT,
    logs.SUBJECT,
    detached.SUBJECT,
    named.SUBJECT,
    placement.SUBJECT,
    slots.SUBJECT,
    actors.SUBJECT,
    memory.SUBJECT,
    replicas.SUBJECT,
    limits.SUBJECT,
    shuffles.SUBJECT,
    scaling.SUBJECT,
    orphans.SUBJECT,
)


def _union(tables: list[Said]) -> Any:
    """Any of the messages of these tables, as a decoder takes it."""
    return Union[tuple(kind for table in tables for kind in table)]  # noqa: UP007


ClientToScheduler: Final = _union([subject.from_client for subject in SUBJECTS])
SchedulerToClient: Final = _union([subject.to_client for subject in SUBJECTS])
WorkerToScheduler: Final = _union([subject.from_worker for subject in SUBJECTS])
SchedulerToWorker: Final = _union([subject.to_worker for subject in SUBJECTS])
ToWorkerFromPeer: Final = _union([subject.from_peer for subject in SUBJECTS])
FromWorkerToPeer: Final = _union([subject.to_peer for subject in SUBJECTS])

ANSWERS: Final[dict[Any, Any]] = {
    call: kind
    for subject in SUBJECTS
    for table in subject
    for call, kind in table.items()
    if kind != UNANSWERED and not (isinstance(kind, type) and issubclass(kind, Message))
}
"""Call -> the type of the value of its Answer."""


def answered(call: type[Message], reply: Answer) -> Any:
    """The value of an answer to `call`, of the type that the call's subject declares.

    Raises:
        msgspec.ValidationError: it is of another type, so the two ends are of different versions.
    """
    return msgspec.msgpack.decode(reply.value, type=ANSWERS[call])
