"""Datasets: values under a name, whose results are kept until they are unpublished."""

from collections.abc import Iterator

from shoal.ids import ClientTaskId, Key
from shoal.protocol.answers import answer
from shoal.protocol.datasets import (
    GetDatasets,
    ListDatasets,
    PublishDatasets,
    Published,
    UnpublishDatasets,
)
from shoal.protocol.detached import JournalStopped
from shoal.protocol.framing import ProtocolError
from shoal.protocol.journal import DatasetGone, DatasetWritten
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.finishing import tell
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.journaling import say_when_durable
from shoal.scheduler.machine.keeping import keep, stop_keeping_all
from shoal.scheduler.model.datasets import Dataset
from shoal.scheduler.model.entities import RELEASED, Client
from shoal.scheduler.model.state import SchedulerState, link_want


def on_publish_datasets(core: Core, client: Client, call: PublishDatasets) -> None:
    """Keep values and what they refer to, all of them or none; a journal has them by the time that
    it is answered.

    Raises:
        ProtocolError: the columns are of different lengths.
    """
    if not len(call.names) == len(call.payloads) == len(call.tasks):
        raise ProtocolError("PublishDatasets has columns of different lengths")
    datasets = core.state.datasets
    taken = [name for name in call.names if name in datasets]
    if taken and not call.override:
        core.to_client(client, answer(call.request, taken[0]))
        return
    for name, payload, numbers in zip(call.names, call.payloads, call.tasks, strict=True):
        dataset = Dataset(name, payload)
        tasks = [client.tasks[number] for number in numbers if number in client.tasks]
        before = datasets.pop(name, None)
        if before is not None:
            stop_keeping_all(core, before.keeper)
        datasets[name] = dataset
        if core.state.journal is not None:
            core.state.journal.entries.append(DatasetWritten(name, payload))
        for task in dict.fromkeys(tasks):
            keep(core, dataset.keeper, task)
    if core.state.journal_trouble:
        core.to_client(client, JournalStopped(core.state.journal_trouble))
    say_when_durable(core, client, answer(call.request, None))


def on_get_datasets(core: Core, client: Client, call: GetDatasets) -> None:
    """Give values, and want for the client what they refer to, in one step."""
    found = [_lend(core, client, name) for name in call.names]
    core.to_client(client, answer(call.request, found))


def on_list_datasets(core: Core, client: Client, call: ListDatasets) -> None:
    """All names."""
    core.to_client(client, answer(call.request, list(core.state.datasets)))


def on_unpublish_datasets(core: Core, client: Client, call: UnpublishDatasets) -> None:
    """Let go of values, and of what only they referred to."""
    gone = [name for name in call.names if _unpublish(core, name)]
    say_when_durable(core, client, answer(call.request, gone))


def datasets_are_filed(state: SchedulerState) -> Iterator[str]:
    """Each value is known by its name."""
    for name, dataset in state.datasets.items():
        if dataset.name != name:
            yield f"{dataset} is filed under {name!r}"


def _lend(core: Core, client: Client, name: Key) -> Published | None:
    dataset = core.state.datasets.get(name)
    if dataset is None:
        return None
    keeper = core.state.keepers.get(dataset.keeper)
    numbers: list[ClientTaskId] = []
    for task in [] if keeper is None else list(keeper.tasks.values()):
        number = ClientTaskId(-core.state.next_loan)
        core.state.next_loan += 1
        link_want(task, client, number)
        if task.state == RELEASED:
            core.starting.append(task)
        else:
            tell(core, task, client, number)
        numbers.append(number)
    return Published(dataset.payload, numbers)


def _unpublish(core: Core, name: Key) -> bool:
    dataset = core.state.datasets.pop(name, None)
    if dataset is None:
        return False
    stop_keeping_all(core, dataset.keeper)
    if core.state.journal is not None:
        core.state.journal.entries.append(DatasetGone(name))
    return True


HANDLERS = Handlers(
    from_client={
        PublishDatasets: on_publish_datasets,
        GetDatasets: on_get_datasets,
        ListDatasets: on_list_datasets,
        UnpublishDatasets: on_unpublish_datasets,
    },
    invariant=datasets_are_filed,
)
