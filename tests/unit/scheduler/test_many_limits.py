"""Thousands of names, each of which may run once: as a crawler has one for each host; or as many
amounts of a resource."""

import sys
from collections.abc import Callable

import pytest

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


def hosts(i: int) -> TaskOptions:
    """Each host once, six of them at most."""
    return TaskOptions(limits={f"host-{i}": 1, "all": 6})


def heavy_hosts(i: int) -> TaskOptions:
    """There is memory for one task more than runs there."""
    return TaskOptions(limits={f"host-{i}": 1, "all": 6}, memory=300 << 20)


def amounts(i: int) -> TaskOptions:
    """Each needs another amount, and there is enough for a few of them."""
    return TaskOptions(resources={"MEM": 1.0 + i / (1 << 20)})


def played(nkinds: int, options: Callable[[int], TaskOptions] = hosts) -> SchedulerMachine:
    """Two tasks of each kind run to their end, six at once at most, never two of one host."""
    machine = SchedulerMachine(SchedulerSettings(), Epoch(1))
    register = RegisterWorker("tcp://w:1", "w", 8, 1 << 30, resources={"MEM": 6.5})
    worker = machine.worker_joined(register, 0.0)
    client = machine.client_joined(RegisterClient("c"), 0.0)
    machine.receive_from_client(client, [DefineClientCode(CodeId(1), b"f")], 0.0)
    machine.take_outgoing()
    ntasks = 2 * nkinds
    message = SubmitTasks(
        ClientTaskId(1),
        [Key(f"x{i}") for i in range(ntasks)],
        [CodeId(1)],
        [b""] * ntasks,
        [],
        ["x"],
        [],
        other_options=[options(i) for i in range(nkinds)],
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
        assert len(running) <= 6
        if options is not amounts:
            assert len(running) == len(frozenset(int(key[1:]) // 2 for key in running))
        run = running.pop(next(iter(running)))
        machine.receive_from_worker(worker, [TaskFinished(run.task, run.run, 10, 0.1, b"1")], 0.0)
        ndone += 1


def calls_per_kind(nkinds: int, options: Callable[[int], TaskOptions]) -> float:
    """How many functions are called meanwhile: a measure that is the same on every machine."""
    ncalls = 0

    def count(*_: object) -> None:
        nonlocal ncalls
        ncalls += 1

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        played(nkinds, options)
    finally:
        sys.setprofile(before)
    return ncalls / nkinds


@pytest.mark.parametrize("options", [hosts, heavy_hosts, amounts])
def test_each_task_costs_the_same_however_many_kinds_there_are(
    options: Callable[[int], TaskOptions],
) -> None:
    assert calls_per_kind(600, options) < 1.2 * calls_per_kind(100, options)


@pytest.mark.parametrize("options", [hosts, heavy_hosts, amounts])
def test_nothing_is_left_of_what_was_waited_for(options: Callable[[int], TaskOptions]) -> None:
    machine = played(300, options)
    state, limits = machine.state, machine.state.limits
    assert list(check(state)) == []
    assert (state.demands, limits.nruns, limits.parked, limits.freed) == ({}, {}, {}, {})
    assert not any(limits.open.values())
    assert not any(line.entries for line in state.lines.values())
