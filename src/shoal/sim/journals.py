"""The disk of a simulated scheduler, what clients publish, and what must be there after a crash.

What is written is on the disk a little later, or is lost with the scheduler.  Who was told that
something is published finds it published, whoever died meanwhile.
"""

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from shoal.client.machine import CANCELLED, ClientMachine
from shoal.ids import JournalId, Key
from shoal.protocol.answers import Answer
from shoal.protocol.datasets import PublishDatasets, UnpublishDatasets
from shoal.protocol.directions import answered
from shoal.protocol.journal import NO_CODE, OPEN, Entry, TaskStands, from_body, to_body
from shoal.protocol.messages import Message, TaskOptions
from shoal.scheduler.machine.journaling import definition_of, stands_of
from shoal.scheduler.model.entities import Task
from shoal.scheduler.model.journaled import Journaled
from shoal.scheduler.model.keepers import DETACHED
from shoal.scheduler.model.state import SchedulerState
from shoal.sim.locking import Calls
from shoal.sim.plan import Publish, Unpublish


class Disk:
    """What outlives a scheduler."""

    def __init__(self) -> None:
        self._bodies: list[bytes] = []
        self.journaled = Journaled()  # all that was written, on disk or not
        self.told: dict[Key, bytes] = {}  # name -> value that is published, as somebody was told
        self._nsaid: dict[Key, int] = {}  # name -> times that somebody published it, or ended that

    def begin(self) -> Journaled:
        """What a scheduler that starts finds; it begins a file of its own with that."""
        found = Journaled(entry for body in self._bodies for entry in from_body(body))
        found.prune()
        entries = list(found.entries())
        self._bodies = [to_body(entries)]
        self.journaled = Journaled(entries)
        self.journaled.workers.clear()  # none has come to this one
        return found

    def sync(self, entries: list[Entry]) -> None:
        """These are there for good."""
        self._bodies.append(to_body(entries))

    def missing(self, found: Journaled) -> Iterator[str]:
        """What somebody was told, and is not so."""
        for name, payload in self.told.items():
            dataset = found.datasets.get(name)
            if dataset is None or dataset.payload != payload:
                yield f"somebody was told that {payload!r} is published as {name!r}"

    def about_to_change(self, name: Key) -> int:
        """Somebody says something of a dataset: until there is an answer, nobody knows what is so.

        Returns how often that was.
        """
        self.told.pop(name, None)
        self._nsaid[name] = self._nsaid.get(name, 0) + 1
        return self._nsaid[name]

    def has_changed(self, name: Key, nsaid: int, payload: bytes) -> None:
        """It was answered; that counts if nobody has said anything since."""
        if self._nsaid[name] == nsaid:
            self.told[name] = payload


class Publishing:
    """What one client publishes, under names of its own."""

    def __init__(self, name: str, call: Calls, machine: ClientMachine, disk: Disk) -> None:
        """`name`: the client's, never used before; `call`: how to ask the scheduler."""
        self._name = name
        self._call = call
        self._machine = machine
        self._disk = disk
        self._nvalues = 0

    def do(self, act: Publish | Unpublish) -> None:
        """Do what the script says."""
        name = Key(f"{act.name}-{act.client}")
        nsaid = self._disk.about_to_change(name)
        if isinstance(act, Unpublish):
            self._call(act, lambda n: UnpublishDatasets(n, [name]), lambda request, answer: None)
            return
        self._nvalues += 1
        payload = f"{self._name} {self._nvalues}".encode()
        records = [r for r in self._machine.records.values() if r.status != CANCELLED]
        numbers = [record.number for record in records[:: act.every]]
        made: Callable[[int], Message] = lambda n: PublishDatasets(  # noqa: E731
            n, [name], [payload], [numbers], act.override
        )

        def told(request: int, answer: Answer) -> None:
            if answered(PublishDatasets, answer) is None:
                self._disk.has_changed(name, nsaid, payload)

        self._call(act, made, told)


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
    same = told.argument, told.prefix, _said(told.options)
    if code is not None and same != (task.argument, task.prefix.name, _said(task.options)):
        yield f"{task!r} is written as {same}"
    shuffle = state.barriers.get(task)
    if told.definition != (None if shuffle is None else definition_of(task, shuffle)):
        yield f"{task!r} is written with the shuffle {told.definition}"
    plain = TaskStands(number, OPEN, retries=task.options.retries)
    stands = stands_of(state, task, number)
    if (told.stands or plain) != stands:
        yield f"{task!r} stands as {stands}, and {told.stands} is written"


def _said(options: TaskOptions) -> TaskOptions:
    """What a client has said: what an output of a shuffle takes is learnt as it goes on."""
    return replace(options, memory=0)
