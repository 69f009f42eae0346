"""Dataframes' expressions: fused together, and annotated.

Dask fuses chains of partition-wise operations only when a single dataframe is persisted or
optimized by name.  What is computed together has to be fused together, or what several share would
be made several times.

Dask keeps no annotations of expressions either.  While a client lives, each expression remembers
what `dask.annotate` said as it was made, and what dask makes of it as it optimizes says the same.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Final

import dask
from dask._task_spec import Alias
from dask.tokenize import tokenize

_dask: Any = dask  # it ships annotations for half of its functions
_SAID: Final = "_shoal_annotations"
_REWRITES: Final = ("simplify_once", "lower_once", "rewrite", "_substitute")
"""Methods in which an expression makes those that take its place."""

FUSED_EXPRESSIONS_MAX: Final = 300
"""To fuse so many takes dask 0.2 s, to fuse twice as many 0.8 s."""

_rewriting: ContextVar[Any] = ContextVar("shoal_rewriting", default=None)


def fused_frames(operands: Sequence[Any], fuse: bool) -> list[Any] | None:
    """These expressions with all chains of partition-wise operations fused, in the same order.

    Operations with different annotations stay apart.  None if the operands are not all of
    dataframes.  Where there are very many expressions they are left as they are: dask takes
    quadratic time, and plain chains of tasks are fused later anyway.

    Args:
        fuse: False: leave them as they are anyway.
    """
    frames = sys.modules.get("dask.dataframe.dask_expr._expr")
    if frames is None or not all(isinstance(operand, frames.Expr) for operand in operands):
        return None
    if not fuse:
        return list(operands)
    said = {part._name: repr(annotations_of(part)) for part in parts_of(operands)}
    if len(said) > FUSED_EXPRESSIONS_MAX:
        return list(operands)
    sequence = sys.modules["dask._expr"]._ExprSequence(*operands)
    if len(frozenset(said.values())) > 1:
        for kept in _edges(operands, said):
            sequence = sequence.substitute(kept, _kept_apart(frames)(kept))
    return list(frames.optimize_blockwise_fusion(sequence).operands)


def parts_of(expressions: Sequence[Any]) -> Iterator[Any]:
    """All expressions that these are made of, each once."""
    stack = list(reversed(expressions))
    seen: dict[str, None] = {}
    while stack:
        expression = stack.pop()
        if expression._name not in seen:
            seen[expression._name] = None
            yield expression
            stack.extend(expression.dependencies())


def annotations_of(expression: Any) -> Mapping[str, Any]:
    """What the user has said about the tasks of an expression, or says just now of all."""
    if type(expression).__name__ == "KeptApart":  # then it becomes one task with what it stands for
        expression = expression.frame
    if type(expression).__name__ == "Fused":
        expression = expression.exprs[0]
    said: Mapping[str, Any] = {**_dask.get_annotations(), **expression.__dict__.get(_SAID, {})}
    return said


def _edges(operands: Sequence[Any], said: Mapping[str, str]) -> list[Any]:
    """Expressions that are annotated in another way than one that needs them, inner ones last."""
    found: dict[str, Any] = {}
    for part in parts_of(operands):
        for need in part.dependencies():
            if said[need._name] != said[part._name]:
                found[need._name] = need
    return list(found.values())


@functools.cache
def _kept_apart(frames: Any) -> Any:
    """An expression that stands for another one, which is not fused with what needs it."""

    class KeptApart(frames.Expr):  # type: ignore[misc]
        _parameters = ["frame"]  # noqa: RUF012  # as dask wants it

        @property
        def _meta(self) -> Any:
            return self.frame._meta

        def __dask_tokenize__(self) -> Any:
            return self.frame._name

        @functools.cached_property
        def _name(self) -> str:  # what becomes one task with it shall be called alike
            name: str = self.frame._name
            return f"{name.rpartition('-')[0]}-{tokenize('kept apart', name)}"

        def _divisions(self) -> Any:
            return self.frame._divisions()

        def _layer(self) -> dict[Any, Any]:
            keys = zip(self.__dask_keys__(), self.frame.__dask_keys__(), strict=True)
            return {key: Alias(key, inner) for key, inner in keys}

    return KeptApart


# --- what was said as an expression was made ------------------------------------------------------


class AnnotatedExpressions:
    """While it is on, expressions remember the annotations under which they were made.

    Not to be turned on and off by several threads at once.
    """

    def __init__(self) -> None:
        self._replaced: list[tuple[type, str, Any, Any]] = []  # (class, name, dask's own, ours)
        self._warning: tuple[Any, bool] | None = None  # the module that warns, and whether it would

    def turn_on(self) -> None:
        """From now on.  Does nothing where dask's expressions are not what we know."""
        expressions = sys.modules.get("dask._expr")
        base: Any = getattr(expressions, "Expr", None)
        single: Any = getattr(expressions, "SingletonExpr", None)
        ours: list[tuple[Any, str, Callable[..., Any]]] = [
            (base, "__new__", self._remembering),
            (single, "__new__", self._remembering),
            *[(base, name, _handing_on) for name in _REWRITES],
        ]
        known = [isinstance(kind, type) and name in vars(kind) for kind, name, _ in ours]
        if self._replaced or not all(known):
            return  # a part of them alone would lose annotations, where dask says that it does
        for kind, name, changed in ours:
            original = vars(kind)[name]
            made = changed(getattr(kind, name))
            replacement = staticmethod(made) if isinstance(original, staticmethod) else made
            self._replaced.append((kind, name, original, replacement))
            setattr(kind, name, replacement)

    def turn_off(self) -> None:
        """Give dask back its own, where nobody else has put something else since."""
        while self._replaced:
            kind, name, original, replacement = self._replaced.pop()
            if vars(kind).get(name) is replacement:
                setattr(kind, name, original)
        if self._warning is not None:
            (module, would_warn), self._warning = self._warning, None
            module._WARN_ANNOTATIONS = would_warn

    def _remembering(self, original: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(original)
        def make(cls: type, *args: Any, **kwargs: Any) -> Any:
            made = original(cls, *args, **kwargs)
            attributes = made.__dict__
            source = _rewriting.get()
            if source is not None:  # what was there before this rewriting is not touched
                if _SAID not in attributes:
                    attributes[_SAID] = _inherited(source, cls)
                return made
            said = _dask.get_annotations()
            if said:
                self._keep_dask_from_warning()
            attributes[_SAID] = (
                {**attributes.get(_SAID, {}), **said} if said else attributes.get(_SAID, said)
            )
            return made

        return make

    def _keep_dask_from_warning(self) -> None:
        """It would say, once, that annotations of dataframes are ignored; here they aren't."""
        if self._warning is None and self._replaced:
            module: Any = sys.modules.get("dask.dataframe.dask_expr._collection")
            if module is not None and hasattr(module, "_WARN_ANNOTATIONS"):
                self._warning = module, module._WARN_ANNOTATIONS
                module._WARN_ANNOTATIONS = False


def _handing_on(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def rewrite(self: Any, *args: Any, **kwargs: Any) -> Any:
        token = _rewriting.set(self)
        try:
            return original(self, *args, **kwargs)
        finally:
            _rewriting.reset(token)

    return rewrite


def _inherited(source: Any, kind: type) -> Mapping[str, Any]:
    """What a new expression of this kind says that was made in place of `source`.

    It may stand for one of the inputs instead, such as a filter that a projection was pushed
    through.
    """
    if type(source) is not kind:
        for need in source.dependencies():
            if type(need) is kind:
                source = need
                break
    said: Mapping[str, Any] = source.__dict__.get(_SAID, {})
    return said
