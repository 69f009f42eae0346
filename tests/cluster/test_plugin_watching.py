"""What plugins of the scheduler are told of steps, as clients err, and as other plugins come."""

import asyncio

import pytest

from shoal import Client, Scheduler, SchedulerPlugin, Worker
from shoal.comms import ProtocolError
from shoal.ids import ClientTaskId, CodeId, Key
from shoal.protocol.messages import DefineClientCode, SubmitTasks


class Graphs(SchedulerPlugin):
    """Keeps the graphs that it is told of."""

    name = "graphs"

    def __init__(self):
        self.told = []

    def update_graph(self, scheduler, *, client, keys, tasks, annotations, priority, **kwargs):
        self.told.append(tasks)


class Restarts(SchedulerPlugin):
    """Wants to know of something else."""

    name = "restarts"

    def restart(self, scheduler):
        """Told of by the same watcher."""


def slice_of(keys, first, *, graph=None, ntasks_ahead=0, option_indices=()):
    return SubmitTasks(
        ClientTaskId(first),
        [Key(key) for key in keys],
        [CodeId(1)],
        [b""] * len(keys),
        [],
        ["p"],
        [],
        graph=graph if graph is None else ClientTaskId(graph),
        ntasks_ahead=ntasks_ahead,
        option_indices=list(option_indices),
    )


def play(scenario):
    asyncio.run(asyncio.wait_for(scenario, 30))


def test_a_graph_that_is_refused_is_nobody_elses_fault():
    async def scenario():
        async with (
            Scheduler(protocol="inproc", plugins=[Graphs()]) as scheduler,
            Worker(scheduler.address),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            stepping = scheduler.membership.stepping
            wrong = stepping.join_inside(lambda messages: None)
            stepping.receive_from_inside(wrong, DefineClientCode(CodeId(1), b""))
            with pytest.raises(ProtocolError, match="different lengths"):
                stepping.receive_from_inside(wrong, slice_of("ab", 1, option_indices=[0]))
            assert await client.submit(abs, -1, key="mine") == 1
            stepping.leave_inside(wrong)
            assert scheduler.plugins["graphs"].told == [["mine"]]

    play(scenario())


def test_a_graph_that_comes_in_slices_is_told_of_though_other_plugins_come_and_go():
    async def scenario():
        async with Scheduler(protocol="inproc", plugins=[Graphs()]) as scheduler:
            stepping = scheduler.membership.stepping
            client = stepping.join_inside(lambda messages: None)
            stepping.receive_from_inside(client, DefineClientCode(CodeId(1), b""))
            first = slice_of("ab", 1, graph=1, ntasks_ahead=1)
            stepping.receive_from_inside(client, first)
            await scheduler.register_scheduler_plugin(Restarts())
            watcher = stepping.watcher
            await scheduler.unregister_scheduler_plugin("restarts")
            assert stepping.watcher is watcher
            stepping.receive_from_inside(client, slice_of("c", 3, graph=1))
            assert scheduler.plugins["graphs"].told == [["a", "b", "c"]]
            stepping.leave_inside(client)

    play(scenario())
