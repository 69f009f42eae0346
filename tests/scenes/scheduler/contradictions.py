"""What a journal says, held against what is so: the next life would have all that is durable."""

from collections.abc import Iterator

from shoal.ids import JournalId
from shoal.protocol.journal import NO_CODE, OPEN, TaskStands
from shoal.scheduler.machine.journaling import definition_of, stands_of
from shoal.scheduler.model.entities import Task
from shoal.scheduler.model.journaled import Journaled
from shoal.scheduler.model.keepers import DETACHED
from shoal.scheduler.model.state import SchedulerState


def contradictions(state: SchedulerState, journaled: Journaled) -> Iterator[str]:
    """A sentence for each thing that a life which began with this journal would have otherwise.

    Args:
        journaled: all entries up to now, those that are not on disk included.
    """
    journal = state.journal
    if journal is None:
        return
    datasets = {name: dataset.payload for name, dataset in state.datasets.items()}
    written = {name: dataset.payload for name, dataset in journaled.datasets.items()}
    if datasets != written:
        yield f"{list(datasets)} are published, and {list(written)} are written"
    for name, dataset in [(None, None), *journaled.datasets.items()]:
        keeper = state.keepers.get(DETACHED if name is None else state.datasets[name].keeper)
        kept = {} if keeper is None else {task.key: None for task in keeper.tasks.values()}
        numbers = journaled.detached if dataset is None else dataset.kept
        told = {journaled.tasks[number].key: None for number in numbers}
        if kept.keys() != told.keys():
            yield f"for {name} {list(kept)} is kept, and {list(told)} is written"
    for number in journaled.ordered(journaled.roots()):
        told_task = journaled.tasks[number]
        task = state.tasks.get(told_task.key)
        if task is None:
            yield f"{told_task!r} is written, and is not known"
        elif not journal.tasks[task].is_inherited:
            yield from _of_task(state, journaled, number, task)
    if set(state.workers) != set(journaled.workers):
        yield f"{list(journaled.workers)} are written, and {list(state.workers)} are there"


def _of_task(
    state: SchedulerState, journaled: Journaled, number: JournalId, task: Task
) -> Iterator[str]:
    told = journaled.tasks[number]
    code = None if told.code == NO_CODE else journaled.codes[told.code]
    if code != (None if task.code is None else task.code.payload):
        yield f"{task!r} calls something else than what is written"
    needs = [each.key for each in task.dependencies]
    if needs != [journaled.tasks[each].key for each in told.dependencies]:
        yield f"{task!r} needs {needs}, and other keys are written"
    same = told.argument, told.prefix, told.options
    if same != (task.argument, task.prefix.name, task.options):
        yield f"{task!r} is written as {same}"
    shuffle = state.barriers.get(task)
    if told.definition != (None if shuffle is None else definition_of(task, shuffle)):
        yield f"{task!r} is written with the shuffle {told.definition}"
    plain = TaskStands(number, OPEN, retries=task.options.retries)
    stands = stands_of(state, task, number)
    if (told.stands or plain) != stands:
        yield f"{task!r} stands as {stands}, and {told.stands} is written"
