"""What a look at a scheduler in another process asks of it."""

import pytest

from shoal.observe.remote import RemoteTasks
from shoal.protocol.keys import to_canonical
from shoal.protocol.questions import TaskStates

STATES = {to_canonical(key): "memory" for key in ("x", ("y", 1))}


@pytest.fixture
def asked() -> list[TaskStates]:
    return []


@pytest.fixture
def tasks(asked: list[TaskStates]) -> RemoteTasks:
    def ask(make: type[TaskStates]) -> dict[str, str]:
        call = make(1)
        asked.append(call)
        keys = STATES if call.keys is None else call.keys
        return {key: STATES[key] for key in keys if key in STATES}

    return RemoteTasks(ask)


def test_a_look_at_one_task_asks_for_that_one_alone(
    tasks: RemoteTasks, asked: list[TaskStates]
) -> None:
    assert tasks["y", 1].state == "memory"
    assert "z" not in tasks
    assert [call.keys for call in asked] == [[to_canonical(("y", 1))], ["z"]]


def test_a_look_at_all_tasks_asks_once(tasks: RemoteTasks, asked: list[TaskStates]) -> None:
    assert {key: task.state for key, task in tasks.items()} == {"x": "memory", ("y", 1): "memory"}
    assert (len(tasks), "x" in tasks, "z" in tasks) == (2, True, False)
    assert [call.keys for call in asked] == [None]


def test_what_can_be_no_key_is_no_task_and_asks_nothing(
    tasks: RemoteTasks, asked: list[TaskStates]
) -> None:
    assert not any(key in tasks for key in ("", None, {}))
    assert asked == []
