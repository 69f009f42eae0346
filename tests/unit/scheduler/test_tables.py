"""What may be said to the scheduler is taken on exactly once, by the machine or by its shell."""

from typing import Any, Final

import pytest

from shoal.protocol.answers import Answer, Refusal
from shoal.protocol.directions import SUBJECTS
from shoal.protocol.messages import Message, RegisterClient, RegisterWorker, VouchForWorker
from shoal.protocol.subject import UNANSWERED
from shoal.scheduler.machine.table import FROM_CLIENT, FROM_WORKER, PARTS
from shoal.scheduler.shell.operations.table import OPERATIONS

BY_THE_SHELL: Final = {RegisterClient, RegisterWorker, VouchForWorker, Answer, Refusal}
"""They begin a connection, or end a call of our own."""

SAID_BY_CLIENTS: Final = [kind for subject in SUBJECTS for kind in subject.from_client]
SAID_BY_WORKERS: Final = [kind for subject in SUBJECTS for kind in subject.from_worker]


@pytest.mark.parametrize("kind", SAID_BY_CLIENTS)
def test_what_a_client_says_is_for_the_machine_or_for_an_operation(kind: Any) -> None:
    takers = [kind in FROM_CLIENT, kind in OPERATIONS, kind in BY_THE_SHELL]
    assert takers.count(True) == 1


@pytest.mark.parametrize("kind", SAID_BY_WORKERS)
def test_what_a_worker_says_is_for_the_machine_or_ends_a_call(kind: Any) -> None:
    assert [kind in FROM_WORKER, kind in BY_THE_SHELL].count(True) == 1


def test_no_two_parts_take_on_the_same_message() -> None:
    """A table made of tables would keep the last one, and say nothing."""
    assert sum(len(part.from_client) for part in PARTS) == len(FROM_CLIENT)
    assert sum(len(part.from_worker) for part in PARTS) == len(FROM_WORKER)


def test_an_operation_is_for_a_call_that_is_answered() -> None:
    answers: dict[Any, Any] = {}
    for subject in SUBJECTS:
        answers.update(subject.from_client)
    assert all(answers[call] != UNANSWERED for call in OPERATIONS)
    assert all("request" in call.__struct_fields__ for call in OPERATIONS)


def test_no_message_is_of_two_subjects() -> None:
    """In one direction; an answer may be given in several."""
    for direction in range(len(SUBJECTS[0])):
        kinds: list[type[Message]] = [kind for subject in SUBJECTS for kind in subject[direction]]
        assert len(kinds) == len(set(kinds))
