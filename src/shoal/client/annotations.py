"""What users say about parts of a graph with `dask.annotate`, as options of its tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from shoal.client.options import task_options
from shoal.protocol.messages import TaskOptions

TOMBSTONE: Final = "_AnnotationsTombstone"
_PLAIN_FIELDS: Final = tuple(
    name for name in TaskOptions.__struct_fields__ if name not in ("workers", "resources", "limits")
)


def options_by_key(
    annotations: Mapping[Any, Mapping[str, Any]], options: TaskOptions | None
) -> dict[Any, TaskOptions]:
    """Options of the tasks that have others than the rest of their graph.

    Args:
        annotations: by key; what is said there holds before what is said about the whole graph.
        options: of the whole graph.

    Returns:
        The same object for equal options, so that they can be told apart by `is`.

    Raises:
        TypeError, ValueError, UnsupportedOption: an annotation that makes no sense.

    Cost: 0.5 us per annotated task.
    """
    base = options or TaskOptions()
    by_text: dict[str, TaskOptions] = {}
    by_fields: dict[tuple[object, ...], TaskOptions] = {}
    found: dict[Any, TaskOptions] = {}
    for key, said in annotations.items():
        name = repr(said)
        own = by_text.get(name)
        if own is None:
            own = _merged(said, base)
            own = by_text[name] = by_fields.setdefault(_fields_of(own), own)
        if own != base:
            found[key] = own
    return found


def _merged(said: Mapping[str, Any], base: TaskOptions) -> TaskOptions:
    # Dask marks so what only other parts of a graph say.
    said = {name: value for name, value in said.items() if type(value).__name__ != TOMBSTONE}
    workers = said.get("workers", base.workers or None)
    allow = said.get("allow_other_workers", base.allow_other_workers or None)
    options = task_options(
        priority=said.get("priority", base.priority),
        retries=said.get("retries", base.retries),
        workers=workers,
        allow_other_workers=allow if workers else None,
        resources=said.get("resources", base.resources or None),
        executor=said.get("executor", base.executor),
        limits=said.get("limits", _as_said(base.limits)),
        memory=said.get("memory", base.memory),
        timeout=said.get("timeout", base.timeout),
        inside=base.inside,
        is_all_said=True,
    )
    return options or TaskOptions()


def _fields_of(options: TaskOptions) -> tuple[object, ...]:
    """What equal options have in common, to look them up by."""
    plain = [getattr(options, name) for name in _PLAIN_FIELDS]
    amounts = [frozenset(part.items()) for part in (options.resources, options.limits)]
    return (*plain, tuple(options.workers), *amounts)


def _as_said(limits: Mapping[str, int]) -> dict[str, int | None]:
    """Limits as users say them: one that is set elsewhere is None."""
    return {name: number or None for name, number in limits.items()}
