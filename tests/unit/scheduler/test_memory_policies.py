"""Choices about where results are: copies, moves, and who may go."""

from collections.abc import Iterator

from shoal.protocol.membership import Closing
from shoal.scheduler.model.copies import Goal
from shoal.scheduler.model.entities import MEMORY, Task, Worker
from shoal.scheduler.model.settings import SchedulerSettings
from shoal.scheduler.policies.measures import managed
from shoal.scheduler.policies.rebalance import EvenOut
from shoal.scheduler.policies.reduction import DROPS_MAX, NO_USES, copies_too_many
from shoal.scheduler.policies.replicas import recipients, sources, surplus
from shoal.scheduler.policies.retirement import (
    Takers,
    is_only_with,
    who_stays,
    workers_to_close,
)
from tests.unit.scheduler.stage import a_result, a_worker


def in_memory(name: str, nbytes: int, *holders: Worker) -> Task:
    task = a_result(name, nbytes, *holders)
    task.state = MEMORY
    return task


def evened(*workers: Worker, **settings: float) -> list[tuple[str, str, str]]:
    """(key, from, to) of what moves among these workers, of whatever they hold."""
    policy = EvenOut(SchedulerSettings(**settings))  # type: ignore[arg-type]
    moves = policy.moves(workers, {worker: list(worker.has_what) for worker in workers}, {})
    return [(move.task.key, move.sender.name, move.recipient.name) for move in moves]


def test_copies_go_to_the_emptiest_workers_first() -> None:
    a, b, d = a_worker("a"), a_worker("b"), a_worker("d")
    in_memory("filler", 100, b)
    task = in_memory("x", 10, a)
    assert recipients(Goal(2, [], 2), task, [a, b, d], {}, {}, {}) == ([d], 0)
    assert recipients(Goal(0, [], 1), task, [a, b, d], {}, {}, {}) == ([d], 1)
    assert recipients(Goal(0, [], 1), task, [a, b, d], {d: None}, {}, {}) == ([], 1)
    assert recipients(Goal(0, [], 2), task, [a, b, d], {}, {d: None}, {}) == ([b], 0)


def test_what_is_on_its_way_counts_as_if_it_were_there() -> None:
    a, b, d = a_worker("a"), a_worker("b"), a_worker("d")
    task = in_memory("x", 10, a)
    assert recipients(Goal(2, [], 2), task, [a, b, d], {}, {}, {b: 10}) == ([d], 0)


def test_copies_come_from_all_holders_in_turn_and_last_from_those_that_leave() -> None:
    workers = [a_worker(chr(ord("a") + i)) for i in range(12)]
    recipient, holders = workers[-1], workers[:-1]
    task = in_memory("x", 10, *holders)
    assert sources(task, recipient, 0) == holders[:8]
    assert sources(task, recipient, 5) == [*holders[5:], *holders[:2]]
    for worker in holders[:10]:
        worker.is_leaving = True
    assert sources(task, recipient, 0) == [holders[10], *holders[:7]]
    assert sources(in_memory("y", 10, recipient), recipient, 3) == []


def test_the_fullest_drop_what_is_too_much() -> None:
    a, b, d = a_worker("a"), a_worker("b"), a_worker("d")
    in_memory("filler", 100, b)
    task = in_memory("x", 10, a, b, d)
    assert surplus(Goal(2, [], 2), task, [a, b, d]) == [b]
    assert surplus(Goal(0, [], 2), task, [a, b, d]) == []


def test_a_result_is_lost_with_workers_if_nobody_else_has_it() -> None:
    a, b = a_worker("a"), a_worker("b")
    task = in_memory("x", 10, a, b)
    assert not is_only_with(task, {a: None})
    assert is_only_with(task, {a: None, b: None})
    b.is_leaving = True
    assert is_only_with(task, {a: None})
    task.value = b"1"  # the scheduler has it
    assert not is_only_with(task, {a: None})


def test_of_workers_that_all_shall_go_the_one_with_most_stays() -> None:
    a, b, d = a_worker("a"), a_worker("b"), a_worker("d")
    assert who_stays([a, b], []) is None  # nothing would be lost
    in_memory("x", 10, a)
    in_memory("y", 20, b)
    assert who_stays([a, b], []) is b
    assert who_stays([a, b], [d]) is None
    d.is_leaving = True
    assert who_stays([a, b], [d]) is b


def test_results_are_taken_by_whoever_is_emptiest_by_then() -> None:
    a, b, d = a_worker("a"), a_worker("b"), a_worker("d")
    a.is_leaving = True
    x, y = in_memory("x", 10, a), in_memory("y", 10, a)
    takers = Takers([a, b, d], {b: 5})
    assert takers.choose(x, {}) is d
    assert takers.choose(y, {}) is b
    assert takers.choose(x, {b: None, d: None}) is None


def test_a_result_goes_where_there_is_room_for_it_if_anywhere() -> None:
    small, large, full = a_worker("small"), a_worker("large"), a_worker("full")
    for worker, limit in ((small, 100), (large, 1000), (full, 1000)):
        worker.memory_limit = limit
    in_memory("filler", 500, large)
    in_memory("fillers", 950, full)
    takers = Takers([small, large, full], {})
    x, y, z = in_memory("x", 300), in_memory("y", 300), in_memory("z", 60)
    assert takers.choose(x, {}) is large
    assert takers.choose(y, {}) is small  # nobody has room, and its memory is emptiest
    assert takers.choose(z, {}) is large


def test_who_is_emptiest_is_looked_at_when_the_first_is_chosen() -> None:
    b, d = a_worker("b"), a_worker("d")
    workers, coming = [b], {b: 5}
    takers = Takers(workers, coming)
    workers.append(d)
    coming[b] = 0
    assert takers.choose(in_memory("x", 10), {}) is b
    coming[d] = 50  # we count ourselves from now on
    assert takers.choose(in_memory("y", 10), {}) is d


def test_idle_workers_may_go_while_the_others_have_memory_enough() -> None:
    workers = [a_worker(name) for name in "abd"]
    for worker in workers:
        worker.memory_limit = 100
    in_memory("x", 40, workers[0])
    assert workers_to_close(workers, Closing()) == [workers[1], workers[2]]
    assert workers_to_close(workers, Closing(memory_ratio=4)) == [workers[1]]
    assert workers_to_close(workers, Closing(minimum=2)) == [workers[1]]
    assert workers_to_close(workers, Closing(target=2)) == [workers[1]]
    assert workers_to_close(workers, Closing(n=3)) == [workers[1], workers[2], workers[0]]


def test_those_of_one_host_go_together() -> None:
    a, b, d = a_worker("a"), a_worker("b"), a_worker("d")
    a.host = b.host = "one"
    assert workers_to_close([a, b, d], Closing(n=1, group="host")) == [d]
    in_memory("x", 10, d)
    assert workers_to_close([a, b, d], Closing(n=2, group="host")) == [a, b]


def test_those_that_are_kept_stay_with_their_group_and_others_go_in_their_place() -> None:
    a, b, d = a_worker("a"), a_worker("b"), a_worker("d")
    assert workers_to_close([a, b, d], Closing(n=1, kept=[a.address])) == [b]
    a.host = b.host = "one"
    assert workers_to_close([a, b, d], Closing(n=2, group="host", kept=[a.address])) == [d]


def test_workers_without_a_limit_have_memory_enough() -> None:
    a, b = a_worker("a"), a_worker("b")
    in_memory("x", 10, a)
    assert workers_to_close([a, b], Closing()) == [b]


def test_memory_is_evened_out_by_what_lies_there_longest() -> None:
    a, b = a_worker("a"), a_worker("b")
    for key in "wxyz":
        in_memory(key, 10, a)
    assert evened(a, b) == [("w", "a", "b"), ("x", "a", "b")]


def test_nearly_empty_and_nearly_even_workers_are_left_alone() -> None:
    a, b = a_worker("a"), a_worker("b")
    a.memory_limit = b.memory_limit = 1000
    for key in "wxyz":
        in_memory(key, 60, a)
    assert evened(a, b) == []  # less than 30 %
    assert evened(a, b, rebalance_sender_ratio=0.2) != []
    assert evened(a, b, rebalance_sender_ratio=0.2, rebalance_gap_ratio=0.5) == []
    assert evened(a, b, rebalance_sender_ratio=0.2, rebalance_recipient_ratio=0.0) == []


def test_a_small_worker_is_given_no_more_than_it_has_memory_for() -> None:
    a, b, d = a_worker("a"), a_worker("b"), a_worker("d")
    b.memory_limit = 100
    for i in range(30):
        in_memory(f"x{i}", 10, a)
    moved = evened(a, b, d)
    to_b = [key for key, _, name in moved if name == "b"]
    assert len(to_b) == 5  # less than 60 % of 100
    assert len(moved) == 15  # the other one has its share
    policy = EvenOut(SchedulerSettings())
    again = policy.moves([a, b, d], {a: list(a.has_what)}, {b: 55})
    assert [move.recipient for move in again] == [d] * 10


def test_what_is_too_large_to_help_does_not_move() -> None:
    a, b = a_worker("a"), a_worker("b")
    in_memory("huge", 100, a)
    in_memory("tiny", 1, a)
    assert evened(a, b) == [("tiny", "a", "b")]


def test_one_worker_has_nobody_to_give_to() -> None:
    a, b = a_worker("a"), a_worker("b")
    in_memory("x", 10, a)
    in_memory("y", 10, a)
    assert evened(a) == []
    b.is_leaving = True
    assert evened(a, b) == []


def test_what_a_worker_has_is_looked_at_only_if_it_gives_something_away() -> None:
    a, b, d = a_worker("a"), a_worker("b"), a_worker("d")
    tasks = [in_memory(f"x{number}", 10, a) for number in range(9)]
    looked_at: list[Task] = []

    def looking(held: list[Task]) -> Iterator[Task]:
        for task in held:
            looked_at.append(task)
            yield task

    movable = {worker: looking(list(worker.has_what)) for worker in (a, b, d)}
    moves = EvenOut(SchedulerSettings()).moves([a, b, d], movable, {})
    assert [move.task for move in moves] == tasks[:6]
    assert len(looked_at) == 6


def test_no_more_copies_of_one_result_are_chosen_at_once_than_a_step_can_drop() -> None:
    holders = [a_worker(f"w{number}") for number in range(DROPS_MAX + 20)]
    task = in_memory("x", 10, *holders)
    in_memory("filler", 100, holders[-1])
    chosen = copies_too_many(task, NO_USES, None, None, managed)
    assert len(chosen) == DROPS_MAX
    assert chosen[0] is holders[-1]  # the fullest of all
