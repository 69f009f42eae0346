"""Runs that give their slot to others, take one again, or ask to be run elsewhere.

A run that has seceded is counted like one that waits for other tasks: its worker has room for one
more, and what it does is nobody's expected work.  What it took until then is what its prefix takes.
"""

from collections.abc import Iterator

from shoal.protocol.slots import LongRunning, RunRejoined, RunRescheduled
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.demands import give_back
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.on_memory import lift
from shoal.scheduler.machine.on_worker import task_of_run
from shoal.scheduler.machine.placing import unplace
from shoal.scheduler.machine.waiting import wait_again
from shoal.scheduler.model.entities import NO_RUN, Worker
from shoal.scheduler.model.estimates import learn_duration
from shoal.scheduler.model.state import SchedulerState


def on_long_running(core: Core, worker: Worker, message: LongRunning) -> None:
    """Its slot is free, and only the time until now says how long such tasks take."""
    task = task_of_run(core, worker, message.task, message.run)
    if task is None or worker.seceded.get(task):
        return
    if task not in worker.seceded:
        learn_duration(task.prefix, message.seconds)
        task.prefix.nfinished -= 1  # it has not
    worker.seceded[task] = True
    worker.nwaiting += 1
    worker.sent_us -= worker.processing[task]
    worker.processing[task] = 0
    core.refill[worker] = None


def on_run_rejoined(core: Core, worker: Worker, message: RunRejoined) -> None:
    """It has a slot again, and is expected to take as long as others of its prefix."""
    task = task_of_run(core, worker, message.task, message.run)
    if task is None or not worker.seceded.get(task):
        return
    worker.seceded[task] = False
    worker.nwaiting -= 1
    expected_us = worker.processing[task] = core.queuing.expected_us(task)
    worker.sent_us += expected_us
    core.refill[worker] = None


def on_run_rescheduled(core: Core, worker: Worker, message: RunRescheduled) -> None:
    """Run it again, elsewhere if anybody else may run it; as often as it asks for that."""
    worker.forfeited.pop(message.run, None)
    if worker.claims:
        give_back(core, worker, message.run)
    if worker.weights:
        lift(core, worker, message.run)
    task = task_of_run(core, worker, message.task, message.run)
    if task is None:
        return
    unplace(core, task, recall=False)
    core.state.avoided.setdefault(task, {})[worker] = None
    wait_again(core, task)


def forget_avoided(core: Core, worker: Worker) -> None:
    """Nobody has to avoid a worker that has gone."""
    avoided = core.state.avoided
    for task, workers in list(avoided.items()):
        workers.pop(worker, None)
        if not workers:
            del avoided[task]


def slots_are_counted(state: SchedulerState) -> Iterator[str]:
    """What has seceded is out, and counted as what it is; what is avoided is there."""
    for worker in state.workers.values():
        nwaiting = worker.nwaiting_heard + sum(worker.seceded.values())
        if worker.nwaiting != nwaiting:
            yield f"{worker} counts {worker.nwaiting} runs without a slot, there are {nwaiting}"
        for task, is_long_running in worker.seceded.items():
            if task.worker is not worker or task.run == NO_RUN:
                yield f"{task!r} has seceded on {worker}, and is not out there"
            elif is_long_running and worker.processing[task]:
                yield f"{task!r} is long-running, and expected to end on {worker}"
    for task, workers in state.avoided.items():
        if state.tasks.get(task.key) is not task:
            yield f"{task!r} avoids workers, and has gone"
        for worker in workers:
            if state.workers.get(worker.address) is not worker:
                yield f"{task!r} avoids {worker}, which has gone"


HANDLERS = Handlers(
    from_worker={
        LongRunning: on_long_running,
        RunRejoined: on_run_rejoined,
        RunRescheduled: on_run_rescheduled,
    },
    worker_gone=forget_avoided,
    invariant=slots_are_counted,
)
