"""What is written for the next life of the scheduler: durable tasks, what they are kept for, and
how they stand.

Nothing is noted as clients submit: what is kept is looked at when it comes to be kept, with all
that it depends on, which is there as long as it is.  The end of a step looks once at whatever has
changed in it.  Who keeps no journal pays one truth test a step.
"""

from collections.abc import Iterable, Iterator

from shoal.ids import JournalId, Key
from shoal.protocol.detached import JournalStopped
from shoal.protocol.journal import (
    FAILED,
    IN_MEMORY,
    NO_CODE,
    OPEN,
    CodeWritten,
    ShuffleWritten,
    TasksForgotten,
    TasksKept,
    TasksLetGo,
    TaskStands,
    WorkersChanged,
)
from shoal.protocol.messages import Message
from shoal.protocol.shuffles import ShuffleDefinition
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.model.entities import ERRED, FORGOTTEN, MEMORY, Client, Code, Task, Worker
from shoal.scheduler.model.journal import Journal, WrittenCode
from shoal.scheduler.model.journaled import SLICE, JournaledTask, to_columns
from shoal.scheduler.model.shuffles import Shuffle
from shoal.scheduler.model.state import SchedulerState

WHO = "the journal"
"""Of those who hear of each transition."""


def say_when_durable(core: Core, client: Client, message: Message) -> None:
    """Say it once all that is so by the end of this step is on disk; at once without a journal."""
    journal = core.state.journal
    if journal is None:
        core.to_client(client, message)
    else:
        journal.held.append((client, message))


def write_down(core: Core, journal: Journal) -> None:
    """A step is over: what has changed in it becomes entries.

    Cost: O(what came to be kept, with what it depends on and was not written + what changed).
    """
    if journal.touched or journal.changed:
        kept, let_go = _take_changed(journal)
        for dataset, numbers in let_go.items():
            journal.entries.append(TasksLetGo(numbers, dataset))
        changed = _take_touched(journal)
        roots = [task for tasks in kept.values() for task in tasks]
        roots += [task for task in changed if not _is_written(journal, task)]
        for task in _write_tasks(core.state, journal, roots):
            changed[task] = None
        for dataset, tasks in kept.items():
            numbers = [journal.tasks[task].number for task in tasks]
            journal.entries.append(TasksKept(numbers, dataset))
        for task in changed:
            _write_stand(core.state, journal, task)


def stands_of(state: SchedulerState, task: Task, number: JournalId) -> TaskStands:
    """How it is with a task, as far as the next life wants to know.

    A barrier's value means nothing there.  That an actor has lived does, as it can't live again.
    """
    nbytes = task.nbytes if task.options.actor else -1
    if task.state == ERRED:
        is_incomplete = task in state.incomplete
        return TaskStands(
            number, FAILED, nbytes, None, "", task.failure, task.blame, task.retries, is_incomplete
        )
    if task.state == MEMORY and task not in state.barriers:
        return TaskStands(
            number, IN_MEMORY, task.nbytes, task.value, task.kind, None, task.blame, task.retries
        )
    return TaskStands(number, OPEN, nbytes, blame=task.blame, retries=task.retries)


def is_plain(task: Task, stands: TaskStands) -> bool:
    """Whether it is as it is with any task that was just submitted."""
    return stands == TaskStands(stands.task, retries=task.options.retries)


def definition_of(barrier: Task, shuffle: Shuffle) -> ShuffleDefinition:
    """What a client has said of a shuffle."""
    return ShuffleDefinition(
        shuffle.id,
        barrier.key,
        shuffle.ninputs,
        shuffle.noutputs,
        shuffle.kind,
        dict(shuffle.outputs),
        shuffle.peak_ratio,
    )


def _take_touched(journal: Journal) -> dict[Task, None]:
    """Durable tasks whose state has changed; those that are forgotten are none any more."""
    touched, journal.touched = journal.touched, {}
    changed: dict[Task, None] = {}
    forgotten: list[JournalId] = []
    for key in touched:
        task = journal.task_by_key.get(key)
        if task is None:
            continue
        if task.state == FORGOTTEN:
            forgotten.append(journal.remove(task))
        else:
            changed[task] = None
    if forgotten:
        journal.entries.append(TasksForgotten(forgotten))
    return changed


def _take_changed(
    journal: Journal,
) -> tuple[dict[Key | None, list[Task]], dict[Key | None, list[JournalId]]]:
    """What is kept now, and what no longer is, by dataset."""
    kept: dict[Key | None, list[Task]] = {}
    let_go: dict[Key | None, list[JournalId]] = {}
    for keeper, task in journal.changed:
        if not keeper.is_durable:  # it has been let go of as a whole, and is called otherwise now
            continue
        if any(owner is keeper for owner, _ in task.wants):
            kept.setdefault(keeper.dataset, []).append(task)
        elif task in journal.tasks:
            let_go.setdefault(keeper.dataset, []).append(journal.tasks[task].number)
    journal.changed.clear()
    return kept, let_go


def _write_tasks(state: SchedulerState, journal: Journal, roots: Iterable[Task]) -> list[Task]:
    """Write those of these, and of what they depend on, that were not written; which they are."""
    tasks = _unwritten(journal, roots)
    columns: dict[JournalId, JournaledTask] = {}
    for task in tasks:
        code = NO_CODE if task.code is None else _code_number(journal, task.code)
        before = journal.tasks.get(task)
        if before is None:
            number = journal.next_task
            journal.next_task = JournalId(number + 1)
            journal.add(task, number)
        else:  # a value that was known by key alone has a run spec now
            number = before.number
            assert before.code is None
            assert task.code is not None
            before.code = task.code
            journal.codes[task.code].nusers += 1
        dependencies = [journal.tasks[each].number for each in task.dependencies]
        columns[number] = JournaledTask(
            task.key, code, task.argument, dependencies, task.prefix.name, task.options
        )
        if len(columns) == SLICE:
            journal.entries.append(to_columns(columns))
            columns = {}
    if columns:
        journal.entries.append(to_columns(columns))
    if state.barriers:
        for task in tasks:
            if task in state.barriers:
                definition = definition_of(task, state.barriers[task])
                journal.entries.append(ShuffleWritten(journal.tasks[task].number, definition))
    return tasks


def _is_written(journal: Journal, task: Task) -> bool:
    """Whether the journal has it, with the run spec that it has now."""
    written = journal.tasks.get(task)
    return written is not None and written.code is task.code


def _unwritten(journal: Journal, roots: Iterable[Task]) -> list[Task]:
    """Those, and what they depend on, that are to be written, what is depended on first."""
    found: dict[Task, None] = {}
    stack = [task for task in roots if not _is_written(journal, task)]
    stack.reverse()
    while stack:
        task = stack[-1]
        if task in found:
            stack.pop()
            continue
        missing = [
            each
            for each in task.dependencies
            if each not in found and not _is_written(journal, each)
        ]
        if missing:
            stack.extend(reversed(missing))
        else:
            found[task] = None
            stack.pop()
    return list(found)


def _code_number(journal: Journal, code: Code) -> JournalId:
    """The journal's number of a code, which is written if it was not."""
    written = journal.codes.get(code)
    if written is None:
        written = journal.codes[code] = WrittenCode(journal.next_code)
        journal.next_code = JournalId(written.number + 1)
        journal.entries.append(CodeWritten(written.number, code.payload))
    return written.number


def _write_stand(state: SchedulerState, journal: Journal, task: Task) -> None:
    """Write how it is with a task, if that is not what was written last."""
    written = journal.tasks.get(task)
    if written is None:
        return
    written.is_inherited = False
    stands = stands_of(state, task, written.number)
    if written.stands is None and is_plain(task, stands):
        return
    if stands != written.stands:
        written.stands = stands
        journal.entries.append(stands)


def stop_writing(core: Core, why: str) -> None:
    """Nothing can be written any more: who waits for it is answered, and everybody is told."""
    state = core.state
    journal, state.journal = state.journal, None
    if journal is None:
        return
    state.journal_trouble = why
    core.have_told(None, WHO)
    for keeper in state.keepers.values():
        keeper.tasks = dict(keeper.tasks)
    for client in state.clients.values():
        core.to_client(client, JournalStopped(why))
    for client, message in journal.held:
        if state.clients.get(client.id) is client:
            core.to_client(client, message)


def note_change(core: Core, task: Task) -> None:
    """Something that is written of a task has changed, though its state has not."""
    journal = core.state.journal
    if journal is not None and task in journal.tasks:
        journal.touched[task.key] = None


def note_barrier(core: Core, task: Task, definition: ShuffleDefinition) -> None:
    """A task is a barrier, though it may have been written before as if it was none."""
    journal = core.state.journal
    if journal is not None and task in journal.tasks:
        journal.touched[task.key] = None
        journal.entries.append(ShuffleWritten(journal.tasks[task].number, definition))


def note_worker(core: Core, worker: Worker) -> None:
    """Somebody to be waited for by the next life."""
    if core.state.journal is not None:
        core.state.journal.entries.append(WorkersChanged([worker.address], []))


def note_gone(core: Core, worker: Worker) -> None:
    """Nobody to be waited for."""
    note_all_gone(core, [worker.address])


def note_all_gone(core: Core, addresses: list[str]) -> None:
    """The same of several, who may never have come in this life."""
    if core.state.journal is not None:
        core.state.journal.entries.append(WorkersChanged([], addresses))


def journal_is_complete(state: SchedulerState) -> Iterator[str]:
    """All that is to be durable is written, with what it depends on, and how it stands."""
    journal = state.journal
    if journal is None:
        return
    for keeper in state.keepers.values():
        for task in journal.has_all_of(keeper):
            yield f"{keeper} keeps {task!r}, which is not written"
    nusers: dict[Code, int] = {}
    for task, written in journal.tasks.items():
        if state.tasks.get(task.key) is not task or journal.task_by_key.get(task.key) is not task:
            yield f"{task!r} is written, and is another one"
        if any(each not in journal.tasks for each in task.dependencies):
            yield f"{task!r} is written, and not all that it depends on"
        if written.code is not None:
            nusers[written.code] = nusers.get(written.code, 0) + 1
        if written.is_inherited:
            continue
        stands = stands_of(state, task, written.number)
        if stands != written.stands and not (written.stands is None and is_plain(task, stands)):
            yield f"{task!r} stands as {stands}, and {written.stands} is written"
    if nusers != {code: known.nusers for code, known in journal.codes.items()}:
        yield "codes that are written have other users than those that are counted"
    if len(journal.task_by_key) != len(journal.tasks):
        yield "tasks that are written are known under keys that they do not have"


HANDLERS = Handlers(worker_joined=note_worker, worker_gone=note_gone, invariant=journal_is_complete)
