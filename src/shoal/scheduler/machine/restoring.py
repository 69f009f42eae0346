"""A journal of the life before becomes tasks, datasets, and what is kept, as if it had been said.

All of it goes through the handlers that hear clients, said by one who leaves at once.  What workers
held in that life is hoped for: nothing is run, and nothing has failed, before they have come back
or are given up.  So a task whose result is there is not drawn into the failure of an input that it
needs no more: an actor that is gone, a scattered value that was lost.
"""

from shoal.ids import ClientTaskId, CodeId, Epoch, JournalId, Key
from shoal.protocol.datasets import PublishDatasets
from shoal.protocol.detached import DetachTasks
from shoal.protocol.journal import FAILED, IN_MEMORY, NO_CODE, OPEN, TaskStands
from shoal.protocol.messages import DefineClientCode, RegisterClient, SubmitTasks
from shoal.protocol.shuffles import DefineShuffles
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.finishing import to_memory
from shoal.scheduler.machine.journaling import WHO
from shoal.scheduler.machine.naming import new_scattered
from shoal.scheduler.machine.on_client import on_define_client_code, on_submit_tasks
from shoal.scheduler.machine.on_dataset import on_publish_datasets
from shoal.scheduler.machine.on_detached import on_detach_tasks
from shoal.scheduler.machine.on_membership import on_register_client, remove_client
from shoal.scheduler.machine.shuffling import on_define_shuffles
from shoal.scheduler.model.entities import ERRED, Client, Task
from shoal.scheduler.model.journal import Journal, WrittenCode
from shoal.scheduler.model.journaled import SLICE, Journaled, to_columns
from shoal.scheduler.model.orphans import Orphan
from shoal.scheduler.model.state import link_want

NAME = "journal"
"""Of the client that says it all."""


def restore(core: Core, journaled: Journaled, epoch: Epoch) -> None:
    """Begin a life with what the journal says, and write on in it.  Cost: O(all that is kept).

    Args:
        journaled: pruned; nothing has happened yet in this life.
        epoch: ours, which is greater than that of the journal.
    """
    state = core.state
    assert not state.tasks, "a journal is for a life that begins"
    assert epoch > journaled.epoch, "who was there before must be told apart"
    state.epoch = epoch
    client = on_register_client(core, RegisterClient(NAME))
    for code, payload in journaled.codes.items():
        on_define_client_code(core, client, DefineClientCode(CodeId(code), payload))
    tasks = _submit(core, client, journaled)
    for number, task in tasks.items():
        _set_stand(core, task, journaled.tasks[number].stands)
    _keep(core, client, journaled, tasks)
    _write_on(core, client, journaled, tasks)
    heirlooms = state.heirlooms
    heirlooms.workers = dict(journaled.workers)
    heirlooms.are_awaited = bool(heirlooms.workers or state.orphans.by_key)
    remove_client(core, client)
    state.first_came_at = None  # nobody has


def _submit(core: Core, client: Client, journaled: Journaled) -> dict[JournalId, Task]:
    """The tasks are there, and wanted by the client; scattered values first, as they need nothing.

    Numbers of the client are in an order in which nothing comes before what it depends on.
    """
    numbers = journaled.ordered(journaled.tasks)
    values = [number for number in numbers if journaled.tasks[number].code == NO_CODE]
    others = [number for number in numbers if journaled.tasks[number].code != NO_CODE]
    wants = {number: ClientTaskId(i) for i, number in enumerate([*values, *others], 1)}
    for number in values:
        _name(core, client, wants[number], journaled.tasks[number].key)
    definitions = [journaled.tasks[number].definition for number in others]
    shuffles = [definition for definition in definitions if definition is not None]
    if shuffles:
        on_define_shuffles(core, client, DefineShuffles(shuffles))
    for start in range(0, len(others), SLICE):
        entry = to_columns({n: journaled.tasks[n] for n in others[start : start + SLICE]})
        said = SubmitTasks(
            first=wants[entry.numbers[0]],
            keys=entry.keys,
            codes=[CodeId(code) for code in entry.codes],
            arguments=entry.arguments,
            dependencies=[[wants[each] for each in needs] for needs in entry.dependencies],
            prefixes=entry.prefixes,
            prefix_indices=entry.prefix_indices,
            options=entry.options[0],
            other_options=entry.options[1:],
            option_indices=entry.option_indices,
        )
        on_submit_tasks(core, client, said)
    return {number: client.tasks[want] for number, want in wants.items()}


def _name(core: Core, client: Client, want: ClientTaskId, key: Key) -> None:
    """A scattered value: a worker has it, or a client brings it again, or it is lost."""
    task = new_scattered(core, key)
    core.state.orphans.named[task] = None
    link_want(task, client, want)
    core.starting.append(task)
    _hope(core, task)


def _set_stand(core: Core, task: Task, stands: TaskStands | None) -> None:
    """It is as it was; of what was in memory, small values are known, and others are hoped for."""
    if stands is None:
        return
    task.blame, task.retries = stands.blame, stands.retries
    if task.options.actor:
        task.nbytes = stands.nbytes  # if it has lived, it is never made again
    if stands.how == FAILED:
        core.move(task, ERRED)
        task.failure = stands.failure
        task.prefix.nfailed += 1
        if stands.is_incomplete:
            core.state.incomplete[task] = None
    elif stands.how == IN_MEMORY and (stands.value is None or _is_elsewhere(core, task)):
        _hope(core, task)
    elif stands.how == IN_MEMORY:
        task.nbytes, task.value, task.kind = stands.nbytes, stands.value, stands.kind
        to_memory(core, task)
    else:
        assert stands.how == OPEN


def _is_elsewhere(core: Core, task: Task) -> bool:
    """Whether its value alone is of no use: an actor lives with its worker; and what was made of a
    shuffle's cut is made again with others, should one of them be missing."""
    barriers = core.state.barriers
    return task.options.actor or any(each in barriers for each in task.dependencies)


def _hope(core: Core, task: Task) -> None:
    """Somebody may come who has the result; nobody is waited for if that is the setting."""
    if core.settings.recovery_seconds > 0:
        orphan = core.state.orphans.by_key.setdefault(task.key, Orphan())
        orphan.is_hoped_for = True


def _keep(core: Core, client: Client, journaled: Journaled, tasks: dict[JournalId, Task]) -> None:
    """Datasets are published, and detached tasks are kept."""
    wants = {task: want for want, task in client.tasks.items()}
    names, payloads, kept = [], [], []
    for name, dataset in journaled.datasets.items():
        names.append(name)
        payloads.append(dataset.payload)
        kept.append([wants[tasks[number]] for number in dataset.kept])
    if names:
        on_publish_datasets(core, client, PublishDatasets(0, names, payloads, kept))
    if journaled.detached:
        numbers = [wants[tasks[number]] for number in journaled.detached]
        on_detach_tasks(core, client, DetachTasks(numbers))


def _write_on(
    core: Core, client: Client, journaled: Journaled, tasks: dict[JournalId, Task]
) -> None:
    """From now on what changes is written, under the numbers that the journal has given."""
    state = core.state
    next_task = JournalId(max(journaled.tasks, default=0) + 1)
    next_code = JournalId(max(journaled.codes, default=0) + 1)
    journal = state.journal = Journal(next_task, next_code)
    for code in journaled.codes:
        journal.codes[client.codes[CodeId(code)]] = WrittenCode(code)
    for number, task in tasks.items():
        written = journal.add(task, number)
        written.stands, written.is_inherited = journaled.tasks[number].stands, True
    journal.codes = {code: known for code, known in journal.codes.items() if known.nusers}
    for keeper in state.keepers.values():
        journal.watch(keeper)
    journal.changed.clear()
    core.have_told(journal.hear, WHO)
