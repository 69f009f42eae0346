"""The queue of ready tasks is a priority queue, whatever comes in whatever order."""

from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.model.entities import PROCESSING, QUEUED, Task
from shoal.scheduler.model.queue import TaskQueue
from tests.unit.scheduler.stage import a_task


def queued(priority: int) -> Task:
    task = a_task(priority=priority)
    task.state = QUEUED
    return task


PUSH = st.integers(-5, 20)
POP = st.just("pop")
LEAVE = st.tuples(st.just("leave"), st.integers(0, 100))


@given(st.lists(st.one_of(PUSH, PUSH, POP, LEAVE)))
def test_it_pops_what_a_sorted_list_would(events: list[object]) -> None:
    """Ties go to who came first within a run; which of two runs is first is not promised."""
    queue = TaskQueue()
    model: list[Task] = []
    for event in events:
        if isinstance(event, int):
            task = queued(event)
            queue.push(task)
            model.append(task)
        elif event == "pop":
            expected = min((task.priority for task in model), default=None)
            peeked, popped = queue.peek(), queue.pop()
            assert peeked is popped
            assert (popped.priority if popped else None) == expected
            if popped is not None:
                model.remove(popped)
        elif model:
            assert isinstance(event, tuple)
            model.pop(event[1] % len(model)).state = PROCESSING
    drained = []
    while (task := queue.pop()) is not None:
        drained.append(task)
    assert [task.priority for task in drained] == sorted(task.priority for task in model)
    assert set(map(id, drained)) == set(map(id, model))


def test_tasks_in_order_share_one_run() -> None:
    """So that a map of 100,000 tasks costs no heap."""
    queue = TaskQueue()
    for priority in range(1000):
        queue.push(queued(priority))
    assert len(queue.runs) == 1
    queue.push(queued(0))
    assert len(queue.runs) == 2


def test_equal_priorities_come_out_as_they_went_in() -> None:
    """A later priority in between does not change that."""
    queue = TaskQueue()
    tasks = [queued(5) for _ in range(4)]
    for task in tasks:
        queue.push(task)
    assert [queue.pop() for _ in tasks] == tasks


def test_what_left_the_queue_is_dropped_when_its_turn_comes() -> None:
    """It keeps its place until then, and is never handed out."""
    queue = TaskQueue()
    gone, stays = queued(1), queued(2)
    queue.push(gone)
    queue.push(stays)
    gone.state = PROCESSING
    assert queue.peek() is stays
    assert queue.pop() is stays
    assert queue.pop() is None
    assert queue.runs == []
