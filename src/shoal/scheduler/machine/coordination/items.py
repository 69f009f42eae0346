"""Values with futures in them: what those refer to is kept for as long as the value is."""

from collections.abc import Iterable

from shoal.errors import FutureUnknown
from shoal.ids import ClientTaskId, Key
from shoal.protocol.answers import Refusal
from shoal.protocol.coordination import PutInQueue, SetVariable, SharedValue
from shoal.protocol.exceptions import to_failure
from shoal.protocol.keys import from_canonical, to_text
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.keeping import keep, stop_keeping
from shoal.scheduler.machine.releasing import settle_all
from shoal.scheduler.model.entities import Client
from shoal.scheduler.model.exchanges import Item


def new_item(
    core: Core, keeper: str, call: PutInQueue | SetVariable, client: Client
) -> Item | None:
    """The value of a call, with its futures kept in the name of `keeper`.

    None if one of them is not known, and the call is refused.
    """
    if not call.keys:
        return Item(call.value, [])
    settle_all(core)
    tasks = core.state.tasks
    for key in call.keys:
        if key not in tasks:
            kind = "queue" if isinstance(call, PutInQueue) else "variable"
            error = FutureUnknown(from_canonical(key), f"{kind} {to_text(Key(call.name))!r}")
            core.to_client(client, Refusal(call.request, to_failure(error)))
            return None
    return Item(call.value, [keep(core, keeper, tasks[key]) for key in call.keys])


def keep_again(core: Core, keeper: str, wants: Iterable[ClientTaskId]) -> list[ClientTaskId]:
    """Want what these wants are for once more, so that it outlasts them."""
    found = core.state.keepers.get(keeper)
    if found is None:
        return []
    tasks = [found.tasks[number] for number in wants if number in found.tasks]
    return [keep(core, keeper, task) for task in tasks]


def shared(item: Item) -> SharedValue:
    """As it is handed over."""
    return SharedValue(item.value, has_futures=bool(item.wants))


def let_go(core: Core, keeper: str, wants: Iterable[ClientTaskId]) -> None:
    """End these wants."""
    for number in wants:
        stop_keeping(core, keeper, number)
