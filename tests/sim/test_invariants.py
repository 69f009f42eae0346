"""Each invariant holds of a sound cluster, and fails of one that was tampered with."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from shoal.client.machine import ERROR, PENDING, Record
from shoal.ids import ClientTaskId, CodeId, Epoch, Key, RunId, TaskId
from shoal.protocol.messages import Failure, RunTask, SubmitTasks, TaskOptions
from shoal.scheduler.model.entities import Task
from shoal.scheduler.model.entities import Worker as SchedulerWorker
from shoal.sim import invariants
from shoal.sim.cluster import Cluster
from shoal.sim.invariants import (
    ENDED,
    FULL,
    GONE,
    RELEASED,
    RESULTS,
    broken,
    the_store_has_what_is_held,
    what_is_needed_is_known,
)
from shoal.sim.oracle import Instance
from shoal.sim.plan import Ask, Plan, Submit, WorkerPlan
from shoal.sim.specs import ALWAYS, TaskSpec, Value
from shoal.sim.violation import Violation
from shoal.sim.worker_side import WorkerActor
from shoal.worker.model.entities import Run

LARGE, SMALL = Key("large"), Key("small")
SUBMIT = Submit(
    0.0,
    0,
    (TaskSpec(LARGE, nbytes=5000), TaskSpec(SMALL, inputs=(LARGE,), nbytes=50)),
)
PLAN = Plan(1, (WorkerPlan(),), 1, (SUBMIT,), ())


class Settled:
    """A cluster that has computed a large and a small result, both still wanted."""

    def __init__(self) -> None:
        self.cluster = Cluster(PLAN)
        self.cluster.after_scheduler_step = lambda: None
        self.cluster.after_worker_step = lambda address: None
        self.cluster.start()
        [client] = self.cluster.live_clients()
        self.client = client
        self.client.submit(SUBMIT)
        self.go_on()

    def go_on(self) -> None:
        while self.cluster.world.nforeground:
            self.cluster.world.step()

    @property
    def worker(self) -> WorkerActor:
        [worker] = self.cluster.live_workers()
        return worker

    @property
    def known_worker(self) -> SchedulerWorker:
        return self.cluster.scheduler.machine.state.workers[self.worker.address]

    def task(self, key: Key) -> Task:
        return self.cluster.scheduler.machine.state.tasks[key]

    def instance(self, key: Key) -> Instance:
        return self.cluster.oracle.known[key]

    def record(self, key: Key) -> Record:
        return self.client.held[key]

    def broken(self) -> set[str]:
        """Names of what doesn't hold now, though it should at the end of a run."""
        found = {name for name, _ in broken(self.cluster, (*ENDED, *RESULTS))}
        found |= {name for name, _ in broken(self.cluster, (what_is_needed_is_known,))}
        if list(the_store_has_what_is_held(self.worker)):
            found.add(invariants.name_of(the_store_has_what_is_held))
        return found


def forget(s: Settled) -> None:
    del s.cluster.oracle.known[SMALL]


def lose_a_task(s: Settled) -> None:
    del s.cluster.scheduler.machine.state.tasks[SMALL]


def lose_a_value(s: Settled) -> None:
    s.worker.store.popitem()


def miscount_waiters(s: Settled) -> None:
    s.task(LARGE).nwaiters += 1


def miscount_pins(s: Settled) -> None:
    s.worker.machine.state.held[s.task(LARGE).id].npins += 1


def swap_a_value(s: Settled) -> None:
    s.worker.store[s.task(LARGE).id] = Value(1, 5000)


def swap_an_inline_value(s: Settled) -> None:
    s.task(SMALL).value = bytes(50)


def blame_nobody(s: Settled) -> None:
    s.task(LARGE).blame = 1


def go_back(s: Settled) -> None:
    s.task(SMALL).state = "waiting"


def keep_a_future_waiting(s: Settled) -> None:
    s.record(SMALL).status = PENDING


def lose_a_worker(s: Settled) -> None:
    del s.cluster.scheduler.machine.state.workers[s.worker.address]


def suspect_a_worker(s: Settled) -> None:
    s.known_worker.hearing.is_lost = True


def lose_a_client(s: Settled) -> None:
    s.cluster.scheduler.machine.state.clients.clear()


def drop_a_want(s: Settled) -> None:
    del s.client.machine.by_number[s.record(SMALL).number]


def forget_a_replica(s: Settled) -> None:
    del s.known_worker.has_what[s.task(LARGE)]


def invent_a_run(s: Settled) -> None:
    run = Run(RunTask(TaskId(99), RunId(99), Key("other"), CodeId(1), b"", 0.0, 1))
    s.worker.machine.state.runs[TaskId(99)] = run


def lose_a_run(s: Settled) -> None:
    s.known_worker.processing[s.task(LARGE)] = 1
    s.task(LARGE).run = RunId(77)


def claim_a_failure(s: Settled) -> None:
    s.record(SMALL).status = ERROR


def let_it_always_raise(s: Settled) -> None:
    s.instance(LARGE).spec = replace(s.instance(LARGE).spec, nfailures=ALWAYS)


def hide_a_result(s: Settled) -> None:
    s.record(LARGE).holders = []
    s.task(LARGE).who_has = None


def leave_a_call_unanswered(s: Settled) -> None:
    s.client.ask(Ask(0.0, 0, "workers"))


def talk_too_much(s: Settled) -> None:
    s.cluster.nmessages = 1_000_000


@pytest.mark.parametrize(
    ("tamper", "name"),
    [
        (forget, "what is needed is known"),
        (lose_a_task, "what is needed is known"),
        (lose_a_value, "the store has what is held"),
        (miscount_waiters, "the scheduler is sound"),
        (miscount_pins, "workers are sound"),
        (swap_a_value, "stored values are right"),
        (swap_an_inline_value, "inline values are right"),
        (blame_nobody, "blame has deaths"),
        (go_back, "wanted work ends"),
        (keep_a_future_waiting, "clients hear of it"),
        (lose_a_worker, "everybody is back"),
        (lose_a_client, "everybody is back"),
        (suspect_a_worker, "nobody is suspect"),
        (drop_a_want, "wants have futures"),
        (forget_a_replica, "replicas are booked"),
        (lose_a_value, "replicas are booked"),
        (invent_a_run, "runs are booked"),
        (lose_a_run, "runs are booked"),
        (claim_a_failure, "views agree"),
        (claim_a_failure, "failures have causes"),
        (let_it_always_raise, "failures are told"),
        (hide_a_result, "results can be had"),
        (leave_a_call_unanswered, "calls are answered"),
        (talk_too_much, "talk is bounded"),
    ],
)
def test_what_was_tampered_with_is_noticed(tamper: Callable[[Settled], None], name: str) -> None:
    settled = Settled()
    assert settled.broken() == set()
    tamper(settled)
    assert name in settled.broken()


def test_whatever_is_left_is_noticed_and_nothing_is_once_all_is_released() -> None:
    settled = Settled()
    everything = (*RELEASED, *GONE)
    assert {name for name, _ in broken(settled.cluster, everything)} == {
        "clients let go",
        "the scheduler lets go",
        "workers let go",
    }
    settled.client.release_all()
    settled.go_on()
    settled.client.leave()
    settled.go_on()
    assert list(broken(settled.cluster, everything)) == []


def test_every_invariant_is_in_one_of_the_lists() -> None:
    listed = {*FULL, *ENDED, *RESULTS, *RELEASED, *GONE}
    listed_names = {invariant.__name__ for invariant in listed}
    asked_apart = {"what_is_needed_is_known", "the_store_has_what_is_held"}
    helpers = {"broken", "name_of", "check_scheduler"}
    defined = {
        name
        for name, found in vars(invariants).items()
        if callable(found) and name[0] in "abcdefghijklmnopqrstuvwxyz"
    }
    assert defined - helpers == listed_names | asked_apart


def test_a_value_under_the_wrong_number_is_noticed() -> None:
    settled = Settled()
    number = settled.record(LARGE).number
    value = Value(settled.instance(SMALL).fingerprint, 50)
    with pytest.raises(Violation, match="got the value of small@0 as the value of large@0"):
        settled.cluster.judge_value(settled.client.name, number, value)


def test_a_value_that_nobody_asked_for_is_noticed() -> None:
    settled = Settled()
    with pytest.raises(Violation, match="under number 999, unknown"):
        settled.cluster.judge_value(settled.client.name, ClientTaskId(999), Value(1, 50))


def test_a_failure_without_a_cause_is_noticed() -> None:
    settled = Settled()
    number = settled.record(LARGE).number
    with pytest.raises(Violation, match="failures have causes"):
        settled.cluster.judge_failure(settled.client.name, number, Failure(b"", "ValueError"))


def run_of(settled: Settled, run: int) -> RunTask:
    task = settled.task(LARGE)
    return RunTask(task.id, RunId(run), LARGE, CodeId(1), b"large@0", 0.0, 1)


def test_a_run_that_begins_twice_is_noticed() -> None:
    settled = Settled()
    cluster, spec = settled.cluster, SUBMIT.tasks[0]
    cluster.run_begins(settled.worker.address, Epoch(1), run_of(settled, 50), spec)
    with pytest.raises(Violation, match="run 50 of 'large' begins twice"):
        cluster.run_begins(settled.worker.address, Epoch(1), run_of(settled, 50), spec)


def test_a_run_of_another_task_s_code_is_noticed() -> None:
    settled = Settled()
    with pytest.raises(Violation, match="'large' calls small@0"):
        settled.cluster.run_begins(
            settled.worker.address, Epoch(1), run_of(settled, 50), SUBMIT.tasks[1]
        )


def test_a_run_where_it_may_not_be_is_noticed() -> None:
    settled = Settled()
    settled.instance(LARGE).options = TaskOptions(workers=["tcp://elsewhere:1"])
    with pytest.raises(Violation, match="restrictions hold"):
        settled.cluster.run_begins(
            settled.worker.address, Epoch(1), run_of(settled, 50), SUBMIT.tasks[0]
        )


def test_a_client_that_wants_a_key_twice_is_noticed() -> None:
    settled = Settled()
    again = SubmitTasks(ClientTaskId(70), [LARGE], [CodeId(1)], [b"large@0"], [], ["large"], [])
    with pytest.raises(Violation, match="wants 'large' as 70 and still as 1"):
        settled.cluster.oracle.client_said(settled.client.name, again)


def test_two_clients_that_hold_one_lock_are_noticed() -> None:
    settled = Settled()
    cluster = settled.cluster
    cluster.clients.append(None)
    cluster.start_client(1)
    settled.go_on()
    first, second = cluster.live_clients()
    first.locking.holding["one"] = 1
    with pytest.raises(Violation, match="hold 'one'"):
        cluster.lock_is_held(second.name, "one")
    cluster.lock_is_held(first.name, "one")
    cluster.lock_is_held(second.name, "other")
    first.end.connection.break_now()  # and with the connection its locks went
    cluster.lock_is_held(second.name, "one")
