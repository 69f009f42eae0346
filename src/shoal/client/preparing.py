"""From what dask hands over to a plain graph: materialised, with what is known about its tasks.

Dask's own way to the plain graph takes quadratic time for delayed calls, forgets annotations of
arrays and bags when it fuses tasks, and doesn't fuse dataframes when they are computed.  So each
kind of graph has its path here, up to where it would fuse tasks one by one: that is done on the way
out, on integers, where annotations are known.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import dask.config
from dask._task_spec import Alias
from dask.core import flatten

from shoal.client.dask_settings import CLIENTS
from shoal.client.frames import annotations_of, fused_frames, parts_of

_flatten: Any = flatten  # dask ships annotations for half of its functions


class Prepared(NamedTuple):
    """A plain graph that is not culled, and what is known about its tasks."""

    tasks: Mapping[Any, Any]
    fusible: Collection[Any] = ()  # keys of tasks that may be made one with their neighbours
    lazy: Collection[Any] = ()  # keys of tasks of bags
    annotations: Mapping[Any, Mapping[str, Any]] = {}  # by key, of tasks that have some


def prepare(dsk: Any, *, fuse: bool = True) -> Prepared:
    """The plain graph of a dict, a HighLevelGraph or an expression.

    Args:
        fuse: whether dataframes are fused; whether the others are, their expressions know.

    Cost: dask's own: 10 to 40 us per task, most of it in making the tasks; run it with garbage
    collection paused, or it takes twice that.
    """
    if isinstance(dsk, dict):
        return Prepared(dsk)
    expressions = sys.modules.get("dask._expr")
    if expressions is not None and isinstance(dsk, expressions.Expr):
        return _of_expression(dsk, expressions, fuse)
    if _is_layered(dsk):
        builder = _Builder()
        builder.add_layers(dsk.layers)
        return builder.prepared()
    if hasattr(dsk, "__dask_graph__"):
        return prepare(dsk.__dask_graph__())
    to_dict = getattr(dsk, "to_dict", None)
    return Prepared(to_dict() if to_dict is not None else dict(dsk))


def _is_layered(dsk: Any) -> bool:
    layered = sys.modules.get("dask.highlevelgraph")  # 10 ms that no plain client needs
    return layered is not None and isinstance(dsk, layered.HighLevelGraph)


def _of_expression(expression: Any, expressions: Any, fuse: bool) -> Prepared:
    if isinstance(expression, expressions._HLGExprSequence):
        operands = expression.operands
    elif isinstance(expression, expressions.HLGExpr):
        operands = [expression]
    else:
        return _of_frames(expression, expressions, fuse)
    if not all(isinstance(operand, expressions.HLGExpr) for operand in operands):
        return _of_any(expression)
    builder = _Builder()
    for operand in operands:
        keys = list(_flatten(operand.__dask_keys__()))
        builder.add_graph(operand.hlg, keys, operand.low_level_optimizer)
    return builder.prepared()


def _of_any(expression: Any) -> Prepared:
    """By dask's own way."""
    tasks = expression.__dask_graph__()
    by_key: dict[Any, dict[str, Any]] = {}
    for name, value_by_key in expression.__dask_annotations__().items():
        for key, value in value_by_key.items():
            by_key.setdefault(key, {})[name] = value
    return Prepared(tasks, annotations=by_key)


def _of_frames(expression: Any, expressions: Any, fuse: bool) -> Prepared:
    """An expression of dataframes, fused as a whole; any other by dask's own way.

    Fusing changes the names of what is asked for, so its tasks get their old keys back.
    """
    is_sequence = isinstance(expression, expressions._ExprSequence)
    before = list(expression.operands) if is_sequence else [expression]
    changed = before
    if dask.config.get("dataframe.shuffle.method", None) == "tasks":
        from shoal.shuffle.expressions import with_peer_shuffles  # few need it

        changed = with_peer_shuffles(before, all_of_them=CLIENTS.chose_tasks)
    after = fused_frames(changed, fuse)
    if after is None:
        return _of_any(expression)
    tasks: dict[Any, Any] = {}
    annotations: dict[Any, Mapping[str, Any]] = {}
    used: dict[str, None] = {}  # names of expressions that others need
    for part in parts_of(after):
        layer = part._layer()
        tasks.update(layer)
        used.update(dict.fromkeys([need._name for need in part.dependencies()]))
        annotated = annotations_of(part)
        if annotated:
            annotations.update({key: _resolved(annotated, key) for key in layer})
    names: dict[Any, Any] = {}  # new key -> old key
    for old, new in zip(before, after, strict=True):
        if old._name == new._name:
            continue
        for key, made in zip(
            _flatten(old.__dask_keys__()), _flatten(new.__dask_keys__()), strict=True
        ):
            if new._name in used or made in names:
                tasks[key] = Alias(key, names.get(made, made))
            else:
                names[made] = key
                tasks[key] = tasks.pop(made)
                if made in annotations:
                    annotations[key] = annotations.pop(made)
    return Prepared(tasks, fusible=tasks if fuse else (), annotations=annotations)


class _Builder:
    """Collects the tasks of layered graphs."""

    def __init__(self) -> None:
        self._tasks: dict[Any, Any] = {}
        self._fusible: dict[Any, None] = {}
        self._lazy: dict[Any, None] = {}
        self._annotations: dict[Any, Mapping[str, Any]] = {}

    def prepared(self) -> Prepared:
        """What was collected."""
        fusible: Collection[Any] = self._fusible
        if len(self._fusible) == len(self._tasks):
            fusible = self._tasks
        return Prepared(self._tasks, fusible, self._lazy, self._annotations)

    def add_graph(self, graph: Any, keys: list[Any], optimizer: Callable[..., Any] | None) -> None:
        """Add what one collection is made of, or several of a kind.

        Args:
            keys: what is wanted of it.
            optimizer: how its kind makes it better; None: the user wants it as it is.
        """
        arrays = sys.modules.get("dask.array.optimization")
        bags = sys.modules.get("dask.bag.core")
        delayed = sys.modules.get("dask.delayed")
        fuses = dask.config.get("optimization.fuse.active")
        if optimizer is None:
            self.add_layers(graph.layers)
        elif delayed is not None and optimizer is delayed.optimize:
            fusible = bool(dask.config.get("optimization.fuse.delayed"))
            self.add_layers(graph.layers, fusible=fusible)
        elif bags is not None and optimizer is bags.optimize:
            self.add_layers(graph.layers, fusible=True, lazy=True)
        elif arrays is not None and optimizer is arrays.optimize and not fuses:
            self.add_layers(_array_layers(graph, keys), fusible=fuses is None)
        else:
            made = optimizer(graph, keys)
            if _is_layered(made):
                self.add_layers(made.layers)
            else:
                self._tasks.update(made)

    def add_layers(
        self, layers: Mapping[str, Any], *, fusible: bool = False, lazy: bool = False
    ) -> None:
        """Add the tasks of these layers."""
        for layer in layers.values():
            tasks = getattr(layer, "mapping", layer)  # the dict itself, if it is made already
            if type(tasks) is not dict:
                tasks = dict(layer)
            self._tasks.update(tasks)
            if fusible:
                self._fusible.update(dict.fromkeys(tasks))
            if lazy:
                self._lazy.update(dict.fromkeys(tasks))
            annotations = getattr(layer, "annotations", None)
            if annotations:
                self._annotations.update({key: _resolved(annotations, key) for key in tasks})


def _array_layers(graph: Any, keys: list[Any]) -> Mapping[str, Any]:
    """As dask's optimization of arrays without the last step, fusing task by task.

    Layers with different annotations stay apart.
    """
    blockwise: Any = sys.modules["dask.blockwise"]
    if not any(layer.annotations for layer in graph.layers.values()):
        graph = blockwise.fuse_roots(blockwise.optimize_blockwise(graph, keys=keys), keys=keys)
    else:
        with dask.config.set({"optimization.annotations.fuse": False}):
            graph = blockwise.optimize_blockwise(graph, keys=keys)
    layers: Mapping[str, Any] = graph.cull(set(keys)).layers
    return layers


def _resolved(annotations: Mapping[str, Any], key: Any) -> dict[str, Any]:
    """What is said about one task; functions are asked with its key."""
    return {name: value(key) if callable(value) else value for name, value in annotations.items()}
