"""How calls get in: one, or one for each item."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any, Final
from uuid import uuid4

from dask.utils import key_split

from shoal import config
from shoal.client.computing import warn_of_large
from shoal.client.errors import TakenKeyWarning
from shoal.client.future import Future, futures_of
from shoal.client.garbage import paused_collection
from shoal.client.hints import take_hints
from shoal.client.lifecycle import ClientBase
from shoal.client.machine import Record
from shoal.client.naming import TakenNames
from shoal.client.options import task_options
from shoal.client.submission import (
    SCALARS,
    Function,
    dump_arguments,
    dump_item,
    key_of_call,
    key_of_item,
    replace_futures,
)
from shoal.ids import Key
from shoal.protocol.keys import to_canonical, to_text
from shoal.protocol.messages import TaskOptions

LARGE_BYTES_MIN: Final = 1_000_000
"""Of a call that may be too much; only then the setting is looked up."""
MAP_SLICE_TASKS: Final = 1000
"""Tasks of a `map` that leave together, while the next ones are prepared."""


class Calls(ClientBase):
    """`submit` and `map`."""

    def submit(
        self,
        func: Callable[..., Any],
        *args: Any,
        key: Any = None,
        workers: Any = None,
        resources: dict[str, float] | None = None,
        retries: int | None = None,
        priority: float = 0,
        fifo_timeout: Any = "100 ms",
        allow_other_workers: bool = False,
        actor: bool = False,
        actors: bool = False,
        pure: bool = True,
        **kwargs: Any,
    ) -> Future:
        """Have `func(*args, **kwargs)` called by a worker; never waits.

        Args:
            func: any callable that pickles.
            args, kwargs: may hold futures, in builtin containers of any depth; the function gets
                their results.
            key: name of the task; made from function and arguments by default.  While somebody
                has a future of that name, another call by it has the result of the first.
            workers: addresses, names or hosts that may run it.
            resources: abstract amounts, such as {"GPU": 1}, that it has of its worker as it runs.
            retries: how often it may fail before the future does.
            priority: larger is sooner.
            allow_other_workers: `workers` is a preference only.
            actor: what `func` makes stays where it is made, and the result is an `Actor`.
            actors: the same.
            pure: equal calls share one task; False: each call is a task of its own.
            fifo_timeout: not used.
            limits: how many tasks of a name may run at once in the whole cluster, such as
                {"db": 8}; names alone go by what is set (see `set_limits`).  A function that takes
                such a keyword itself gets it, and so does a class of which that can't be read, such
                as `dict`; what `dask.annotate` says is always about the task.
            memory: what a run takes of its worker's memory, in bytes or as "2 GiB", where that
                shall be known before one has run; as with `limits`, the function's own comes first.
            timeout: how long a run may take, in seconds or as "5 minutes"; one that takes longer
                is ended, and has failed with `TaskTimeout`.  As with `limits`, the function's own
                comes first.  A run with a timeout is also ended when nobody wants it any more.

        Raises:
            TypeError: `func` can't be called, or something can't be pickled.
            CancelledError: the client is closed.
        """
        if not callable(func):
            raise TypeError(f"The first argument of submit is a function, not {func!r}")
        _refuse_others_of_none(workers, allow_other_workers)
        options = task_options(
            priority=priority,
            retries=retries,
            workers=workers,
            allow_other_workers=allow_other_workers or None,
            resources=resources,
            actor=actor or actors,
            **take_hints(func, kwargs),
        )
        self.session.require_running()
        is_actor = bool(actor or actors)
        function = self._function(func, is_actor)
        named = key is not None
        if not named:
            key = key_of_call(function, args, kwargs, pure and not is_actor)
        canonical = to_canonical(key)  # before anything looks into it
        prefix = str(key_split(key)) if named else function.name
        argument, futures = dump_arguments(args, kwargs, key, self.face)
        if len(argument) + len(function.payload) > LARGE_BYTES_MIN:
            self._look_at_size(len(argument) + len(function.payload))
        needs = [self.input_of(future) for future in futures]
        session = self.session
        with session.lock:
            session.require_running()  # what is wanted after the end, nobody would ever resolve
            if named:  # what was released under this name before must go first
                session.take_dropped()
            else:
                session.forget_failed((canonical,))
            records = session.machine.submit(
                function.definition,
                prefix,
                [canonical],
                [argument],
                [needs] if needs else (),
                options,
            )
        session.wake()
        future = Future.of_record(key, self.face, records[0])
        if named:
            self._note_name(key, records[0], function, argument, needs)
        return future

    def _note_name(
        self, key: Any, record: Record, function: Function, argument: bytes, needs: list[Record]
    ) -> None:
        """Warn the user of `submit` if the future is that of another call by the same name."""
        names = self.session.state_of(TakenNames)
        inputs = tuple([need.key for need in needs]) if needs else ()
        if names.is_another(record, function.digest, argument, inputs):
            level = 3 if self.owner is None else 4  # the blocking client is around us
            warnings.warn(TakenKeyWarning(key), stacklevel=level)

    def map(
        self,
        func: Callable[..., Any],
        *iterables: Iterable[Any],
        key: Any = None,
        workers: Any = None,
        retries: int | None = None,
        resources: dict[str, float] | None = None,
        priority: float = 0,
        allow_other_workers: bool = False,
        fifo_timeout: Any = "100 ms",
        actor: bool = False,
        actors: bool = False,
        pure: bool = True,
        batch_size: int | None = None,
        **kwargs: Any,
    ) -> list[Future]:
        """Have `func` called with each item of `iterables`, as the builtin `map` does; never waits.

        Args:
            key: a text to begin all keys with, or a list of keys.
            kwargs: the same for all calls; sent once.
            batch_size: not used; work leaves in slices anyway.

        See `submit` for the others.
        """
        if not callable(func):
            raise TypeError(f"The first argument of map is a function, not {func!r}")
        _refuse_iterators(iterables)
        _refuse_others_of_none(workers, allow_other_workers)
        options = task_options(
            priority=priority,
            retries=retries,
            workers=workers,
            allow_other_workers=allow_other_workers or None,
            resources=resources,
            actor=actor or actors,
            **take_hints(func, kwargs),
        )
        self.session.require_running()
        each: dict[str, Any] = {}
        is_actor = bool(actor or actors)
        if kwargs and (futures_of(kwargs) or replace_futures((), kwargs, self.face)[2]):
            each = kwargs
        elif kwargs:
            func = partial(func, **kwargs)
        function = self._function(func, is_actor)
        keys = None
        if isinstance(key, (list, tuple)):
            keys = list(key)
            _refuse_repeated(keys)
        elif key is not None:
            to_canonical(key)  # raises what makes no key
            function = function._replace(name=str(key))
        prefix = function.name
        items = zip(*iterables, strict=False)
        futures: list[Future] = []
        unique = None if pure and not is_actor else uuid4().hex
        with paused_collection():
            while part := list(islice(items, MAP_SLICE_TASKS)):
                named = _keys_of_part(function, part, each, keys, len(futures), unique)
                futures += self._submit_part(function, prefix, part, each, named, options)
        if keys is not None and len(keys) != len(futures):
            raise ValueError(f"{len(keys)} keys were given for {len(futures)} tasks")
        return futures

    def _function(self, func: Callable[..., Any], is_actor: bool) -> Function:
        """What is sent of a function, or of what makes an actor."""
        if not is_actor:
            return self._functions.prepare(func)
        from shoal.client.actors.making import Maker  # few programs have any

        return self._functions.prepare(Maker(func))

    def _look_at_size(self, nbytes: int, ntasks: int = 1, depth: int = 4) -> None:
        """Warn if calls carry more than what is set; `depth`: of the user's frame, from here."""
        if nbytes > config.read(config.Client).large_graph_bytes:
            warn_of_large(nbytes, ntasks, stacklevel=depth + (self.owner is not None))

    def _submit_part(
        self,
        function: Function,
        prefix: str,
        part: Sequence[tuple[Any, ...]],
        kwargs: dict[str, Any],
        keys: list[Any],
        options: TaskOptions | None,
    ) -> list[Future]:
        arguments: list[bytes | int] = []
        needs: list[list[Any]] = []
        anything_needed = False
        for args, key in zip(part, keys, strict=True):
            if len(args) == 1 and not kwargs and type(args[0]) in SCALARS:
                arguments.append(dump_item(args[0]))
                needs.append([])
                continue
            argument, futures = dump_arguments(args, kwargs, key, self.face)
            arguments.append(argument)
            needs.append([self.input_of(future) for future in futures])
            anything_needed = anything_needed or bool(futures)
        nbytes = len(function.payload) + sum(len(a) for a in arguments if type(a) is bytes)
        if nbytes > LARGE_BYTES_MIN:
            self._look_at_size(nbytes, len(part), depth=5)
        session = self.session
        canonical: list[Key] = [to_canonical(key) for key in keys]
        with session.lock:
            session.require_running()  # it may have ended since the map began
            session.forget_failed(canonical)
            records = session.machine.submit(
                function.definition,
                prefix,
                canonical,
                arguments,
                needs if anything_needed else (),
                options,
            )
        session.wake()
        face = self.face
        of_record = Future.of_record
        return [of_record(key, face, record) for key, record in zip(keys, records, strict=True)]


def _refuse_iterators(iterables: tuple[Iterable[Any], ...]) -> None:
    """Raise TypeError if there is nothing to map over, or nothing that could be read again."""
    if not iterables:
        raise TypeError("map takes at least one iterable beside the function")
    for iterable in iterables:
        if hasattr(iterable, "__next__") or type(iterable).__name__ in ("Queue", "SimpleQueue"):
            raise TypeError(
                f"map takes lists and the like, not a {type(iterable).__name__}, "
                "which can be read only once. Make a list of it, or submit one by one."
            )


def _refuse_others_of_none(workers: Any, allow_other_workers: Any) -> None:
    """Raise ValueError if workers other than those that were named are allowed, and none was."""
    if allow_other_workers is True and workers is None:
        raise ValueError("Only use allow_other_workers= beside workers=, which names the first")


def _refuse_repeated(keys: list[Any]) -> None:
    """Raise ValueError if two tasks would share a key, and so a result."""
    counts = Counter(map(to_canonical, keys))
    if len(counts) == len(keys):
        return
    repeated = next(key for key, n in counts.items() if n > 1)
    raise ValueError(
        f"key= names {to_text(repeated)!r} more than once, so two tasks would share one result. "
        "Give each task a key of its own."
    )


def _keys_of_part(
    function: Function,
    part: Sequence[tuple[Any, ...]],
    kwargs: dict[str, Any],
    keys: list[Any] | None,
    start: int,
    unique: str | None,
) -> list[Any]:
    """Keys of the tasks of one slice, the first of which is number `start` of the map."""
    if keys is not None:
        given = keys[start : start + len(part)]
        if len(given) != len(part):
            raise ValueError(
                f"key= has {len(keys)} keys, and there are more tasks. Give one for each, or a "
                "text that all keys begin with."
            )
        return given
    if unique is not None:
        return [f"{function.name}-{unique}-{start + i}" for i in range(len(part))]
    if len(part[0]) == 1 and not kwargs:
        return [
            key_of_item(function, args[0])
            if type(args[0]) in SCALARS
            else key_of_call(function, args, kwargs, True)
            for args in part
        ]
    return [key_of_call(function, args, kwargs, True) for args in part]
