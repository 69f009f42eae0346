"""What the task of an actor calls: it makes the object, and leaves it where it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Mapping
from importlib import import_module
from typing import Any, Final, Protocol

from dask._task_spec import Task, TaskRef, convert_legacy_task
from dask.base import is_dask_collection
from dask.core import flatten
from dask.utils import funcname
from msgspec.structs import replace

from shoal.client.finding import Tasks
from shoal.observe.inside import RunningTask, current_task
from shoal.protocol.keys import from_canonical
from shoal.protocol.messages import TaskOptions

_flatten: Any = flatten  # dask ships annotations for half of its functions
_convert: Any = convert_legacy_task


class Maker:
    """Calls a class, or whatever makes the object; its result is the actor's proxy."""

    __slots__ = ("make",)

    makes_actor: Final = True

    def __init__(self, make: Callable[..., Any]) -> None:
        self.make = make

    @property
    def __name__(self) -> str:
        """As that of what makes the object, for its key."""
        return str(funcname(self.make))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Make the actor; in a task, on the worker where it shall live."""
        instance = self.make(*args, **kwargs)
        return _made_later(instance) if inspect.iscoroutine(instance) else made(instance)

    def __reduce__(self) -> tuple[type, tuple[Callable[..., Any]]]:
        return Maker, (self.make,)


class Hosting(Protocol):
    """What a worker does for an actor."""

    address: str

    def host_actor(self, task: RunningTask, instance: object, proxy: object) -> None:
        """Keep it for as long as the proxy is kept."""


def made(instance: Any) -> Any:
    """The proxy of an object that lives from now on on the worker of the calling task."""
    task: Any = current_task.get()
    assert task is not None, "actors are made by tasks"
    worker: Hosting = task.worker
    proxy_class = import_module("shoal.client.actors.proxy").Actor
    key = from_canonical(task.key)
    proxy = proxy_class.of_run(type(instance), worker.address, key, task.run.number)
    worker.host_actor(task, instance, proxy)
    return proxy


async def _made_later(coming: Coroutine[Any, Any, Any]) -> Any:
    """As `made`, of what a coroutine function makes."""
    return made(await coming)


def who_are_actors(actors: Any) -> frozenset[Any] | bool:
    """What `actors=` of compute and its kin means: all, or these keys.

    Args:
        actors: a truth; or a key, a collection, or several of these; or a dict of such by truth.
    """
    if isinstance(actors, Mapping):
        actors = [key for key, is_one in actors.items() if is_one]
    if actors is None or isinstance(actors, bool):
        return bool(actors)
    if not isinstance(actors, (list, set, frozenset)):
        actors = [actors]
    keys: list[Any] = []
    for part in actors:
        if is_dask_collection(part):
            keys += _flatten(part.__dask_keys__())
        else:
            keys.append(getattr(part, "key", part))
    return frozenset(keys)


class GraphMaker:
    """Makes an actor of what a task of a graph returns."""

    __slots__ = ("names", "node")

    makes_actor: Final = True

    def __init__(self, node: Any, names: list[Any]) -> None:
        """`names`: keys of the task's inputs, in the order in which they are given."""
        self.node = node
        self.names = names

    def __call__(self, *inputs: Any) -> Any:
        """The actor's proxy."""
        return made(self.node(dict(zip(self.names, inputs, strict=True))))

    def __reduce__(self) -> tuple[type, tuple[Any, list[Any]]]:
        return GraphMaker, (self.node, self.names)


def with_actors(prepared: Tasks, wanted: frozenset[Any] | bool, base: TaskOptions) -> Tasks:
    """A plain graph whose tasks make actors: all that call something, or those of these keys.

    `base`: what the options of tasks without any of their own are.
    """
    tasks, options = dict(prepared.by_key), dict(prepared.options_by_key)
    asked = tasks if wanted is True else frozenset(wanted or ())
    keys = [key for key in tasks if key in asked]
    actors: dict[Any, None] = {}
    for key in keys:
        node = _convert(key, tasks[key], tasks.keys())
        if isinstance(node, Task):
            needs = list(node.dependencies)
            tasks[key] = Task(key, GraphMaker(node, needs), *[TaskRef(need) for need in needs])
            options[key] = replace(options.get(key, base), actor=True)
            actors[key] = None
    fusible = [key for key in prepared.fusible if key not in actors]
    return Tasks(tasks, fusible, prepared.lazy, options)
