"""Thousands of names, each of which may run once: as a crawler has one for each host."""

import sys

from shoal.ids import ClientTaskId, CodeId, Epoch, Key
from shoal.protocol.messages import (
    DefineClientCode,
    RegisterClient,
    RegisterWorker,
    RunTask,
    SubmitTasks,
    TaskFinished,
    TaskOptions,
)
from shoal.scheduler.machine.invariants import check
from shoal.scheduler.machine.step import SchedulerMachine
from shoal.scheduler.model.settings import SchedulerSettings


def played(nhosts: int) -> SchedulerMachine:
    """Two tasks of each host run to their end, six at once at most, never two of one host."""
    machine = SchedulerMachine(SchedulerSettings(), Epoch(1))
    worker = machine.worker_joined(RegisterWorker("tcp://w:1", "w", 8, 0), 0.0)
    client = machine.client_joined(RegisterClient("c"), 0.0)
    machine.receive_from_client(client, [DefineClientCode(CodeId(1), b"f")], 0.0)
    machine.take_outgoing()
    ntasks = 2 * nhosts
    message = SubmitTasks(
        ClientTaskId(1),
        [Key(f"x{i}") for i in range(ntasks)],
        [CodeId(1)],
        [b""] * ntasks,
        [],
        ["x"],
        [],
        other_options=[TaskOptions(limits={f"host-{i}": 1, "all": 6}) for i in range(nhosts)],
        option_indices=[1 + i // 2 for i in range(ntasks)],
    )
    machine.receive_from_client(client, [message], 0.0)
    while machine.wake_at == 0.0:  # so many are made ready in several steps
        machine.wake(0.0)
    running: dict[str, RunTask] = {}
    ndone = 0
    while True:
        for peer, said in machine.take_outgoing():
            if peer is worker:
                running.update({run.key: run for run in said if isinstance(run, RunTask)})
        if not running:
            assert ndone == ntasks
            return machine
        hosts = [int(key[1:]) // 2 for key in running]
        assert len(hosts) == len(frozenset(hosts)) <= 6
        run = running.pop(next(iter(running)))
        machine.receive_from_worker(worker, [TaskFinished(run.task, run.run, 10, 0.1, b"1")], 0.0)
        ndone += 1


def calls_per_host(nhosts: int) -> float:
    """How many functions are called meanwhile: a measure that is the same on every machine."""
    ncalls = 0

    def count(*_: object) -> None:
        nonlocal ncalls
        ncalls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        played(nhosts)
    finally:
        sys.setprofile(before)
    return ncalls / nhosts


def test_each_task_costs_the_same_however_many_names_there_are() -> None:
    assert calls_per_host(600) < 1.2 * calls_per_host(100)


def test_nothing_is_left_of_names_that_were_waited_for() -> None:
    machine = played(300)
    limits = machine.state.limits
    assert list(check(machine.state)) == []
    assert (machine.state.demands, limits.nruns, limits.parked, limits.freed) == ({}, {}, {}, {})
