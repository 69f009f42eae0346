"""What clients leave here by nested keys, and which tasks have ended since somebody asked."""

from collections.abc import Iterator, Sequence
from functools import partial

from shoal.ids import Key
from shoal.protocol.answers import answer
from shoal.protocol.framing import ProtocolError
from shoal.protocol.metadata import (
    EMPTY,
    CollectedTasks,
    CollectTasks,
    GetMetadata,
    Leaf,
    SetMetadata,
)
from shoal.scheduler.machine.core import Core
from shoal.scheduler.machine.handlers import Handlers
from shoal.scheduler.machine.story import Record
from shoal.scheduler.model.entities import ERRED, MEMORY, RELEASED, Client
from shoal.scheduler.model.metadata import Collection, Node
from shoal.scheduler.model.state import SchedulerState

COLLECTIONS = "collections"
"""Who is told of transitions while somebody collects."""


def on_set_metadata(core: Core, client: Client, call: SetMetadata) -> None:
    """Put a value at the end of a path, in place of what is there or on the way.

    Cost: O(leaves).

    Raises:
        ProtocolError: there is no path, or no value.
    """
    if not call.path or not call.leaves:
        raise ProtocolError("SetMetadata has no path or no leaves")
    set_leaves(core.state, call.path, call.leaves)
    core.to_client(client, answer(call.request, None))


def set_leaves(state: SchedulerState, path: Sequence[Key], leaves: Sequence[Leaf]) -> None:
    """Put a value, taken apart, at the end of a path."""
    tree: Node = {}
    for keys, payload in leaves:
        _put(tree, [*path, *keys], payload)
    node = state.metadata
    for key in path[:-1]:
        part = tree[key]
        assert isinstance(part, dict)  # the path was put there as far as this
        tree = part
        child = node.get(key)
        if not isinstance(child, dict):
            child = node[key] = {}
        node = child
    node[path[-1]] = tree[path[-1]]


def on_get_metadata(core: Core, client: Client, call: GetMetadata) -> None:
    """The leaves at the end of a path.  Cost: O(those)."""
    core.to_client(client, answer(call.request, leaves_at(core.state, call.path)))


def leaves_at(state: SchedulerState, path: list[Key]) -> list[Leaf] | None:
    """The leaves at the end of a path; None if it leads nowhere."""
    node: Node | bytes | None = state.metadata
    for key in path:
        node = node.get(key) if isinstance(node, dict) else None
    return None if node is None else _leaves(node)


def on_collect_tasks(core: Core, client: Client, call: CollectTasks) -> None:
    """Note how tasks end; while nobody asks for that, no task costs anything for it."""
    core.state.collections[client, call.name] = Collection()
    core.have_told(partial(_note, core), COLLECTIONS)
    core.to_client(client, answer(call.request, None))


def on_collected_tasks(core: Core, client: Client, call: CollectedTasks) -> None:
    """How tasks ended since; the collection is over."""
    collection = core.state.collections.pop((client, call.name), None)
    _stop_recording(core)
    core.to_client(client, answer(call.request, {} if collection is None else collection.ended))


def drop_collections(core: Core, client: Client) -> None:
    """The client has gone, and its collections are over."""
    for asked in [asked for asked in core.state.collections if asked[0] is client]:
        del core.state.collections[asked]
    _stop_recording(core)


def collectors_are_there(state: SchedulerState) -> Iterator[str]:
    """Whoever collects is connected."""
    for client, name in state.collections:
        if state.clients.get(client.id) is not client:
            yield f"{name!r} is collected for {client}, which has gone"


def _note(core: Core, record: Record) -> None:
    """A transition was recorded, and somebody collects."""
    _, key, start, finish, *_ = record
    for collection in core.state.collections.values():
        if start == RELEASED:
            collection.began[key] = None
        elif finish in (MEMORY, ERRED) and key in collection.began:
            collection.ended[key] = finish


def _stop_recording(core: Core) -> None:
    if not core.state.collections:
        core.have_told(None, COLLECTIONS)


def _put(tree: Node, path: list[Key], payload: bytes) -> None:
    node = tree
    for key in path[:-1]:
        child = node.setdefault(key, {})
        if isinstance(child, bytes):
            raise ProtocolError("SetMetadata has a leaf below a leaf")
        node = child
    node[path[-1]] = payload if payload != EMPTY else {}


def _leaves(root: Node | bytes) -> list[Leaf]:
    leaves: list[Leaf] = []
    stack: list[tuple[list[Key], Node | bytes]] = [([], root)]
    while stack:
        path, node = stack.pop()
        if isinstance(node, bytes):
            leaves.append((path, node))
        elif not node:
            leaves.append((path, EMPTY))
        else:
            stack += [([*path, key], child) for key, child in reversed(node.items())]
    return leaves


HANDLERS = Handlers(
    from_client={
        SetMetadata: on_set_metadata,
        GetMetadata: on_get_metadata,
        CollectTasks: on_collect_tasks,
        CollectedTasks: on_collected_tasks,
    },
    client_gone=drop_collections,
    invariant=collectors_are_there,
)
