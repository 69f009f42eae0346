"""The plugins of one service: under which names, which of them have which hook, what they cost.

Which hooks a plugin overrides is looked at once, as it is added; a hook that nobody has is an empty
list, whose truth is all that a service tests.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import perf_counter
from typing import Any, Final
from uuid import uuid4

from shoal.comms.cancellation import is_our_cancellation
from shoal.observe.errors import HookCancelled, PluginUnknown

Called = list[tuple[str, Callable[..., Any]]]
"""Name of a plugin, and its own hook."""

HOOK_ERRORS: Final = (Exception, asyncio.CancelledError)
"""What a hook may raise: it cancels things of its own, perhaps, and lets that through."""


class PluginTable:
    """The plugins of one service, in the order in which they came."""

    def __init__(
        self, base: type[Any], hooks: Sequence[str], logger: logging.Logger, where: str
    ) -> None:
        """No plugins yet.

        Args:
            base: the class whose methods do nothing.
            hooks: those of its methods that are called again and again.
            logger: hears of what they raise.
            where: for errors, such as "the scheduler".
        """
        self.by_name: dict[str, Any] = {}
        self.seconds: dict[str, float] = {}
        """Name -> time that its hooks have taken, coroutines aside."""
        self._base = base
        self._called: dict[str, Called] = {hook: [] for hook in hooks}
        self._logger = logger
        self._where = where
        self._told: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self.by_name)

    def having(self, hook: str) -> Called:
        """Who has that hook; the list is always the same one."""
        return self._called[hook]

    def add(self, name: str, plugin: Any) -> None:
        """Enter a plugin; one that has the name already must be removed before."""
        self.by_name[name] = plugin
        self.seconds.setdefault(name, 0.0)
        for hook, called in self._called.items():
            if is_overridden(plugin, self._base, hook):
                called.append((name, getattr(plugin, hook)))

    def remove(self, name: str) -> Any:
        """Take a plugin out, and return it.

        Raises:
            PluginUnknown: none has that name (a ValueError).
        """
        if name not in self.by_name:
            raise PluginUnknown(name, self._where)
        for called in self._called.values():
            called[:] = [entry for entry in called if entry[0] != name]
        self._told = {told: None for told in self._told if told[0] != name}
        self.seconds.pop(name, None)
        return self.by_name.pop(name)

    def call(self, hook: str, *args: Any, **kwargs: Any) -> list[tuple[str, Awaitable[Any]]]:
        """Call a hook of everybody who has it; returns what is to be awaited, by name."""
        awaited: list[tuple[str, Awaitable[Any]]] = []
        for name, method in list(self._called[hook]):
            started = perf_counter()
            try:
                result = method(*args, **kwargs)
                if inspect.isawaitable(result):
                    awaited.append((name, result))
            except HOOK_ERRORS as error:
                self.tell(name, hook, error)
            self._charge(name, started)
        return awaited

    def call_for_each(self, hook: str, calls: Iterable[tuple[tuple[Any, ...], Any]]) -> None:
        """Call a hook of everybody who has it, once for each (args, kwargs) of `calls`."""
        calls = list(calls)
        for name, method in list(self._called[hook]):
            started = perf_counter()
            for args, kwargs in calls:
                try:
                    method(*args, **kwargs)
                except HOOK_ERRORS as error:
                    self.tell(name, hook, error)
            self._charge(name, started)

    async def finish(self, hook: str, name: str, awaited: Awaitable[Any]) -> None:
        """Await what a hook has returned; an error is told, and no more."""
        try:
            await awaited
        except HOOK_ERRORS as error:
            if is_our_cancellation(error):
                raise
            self.tell(name, hook, error)

    def tell(self, name: str, hook: str, error: BaseException) -> None:
        """A hook has raised: say so, the first time."""
        if (name, hook) not in self._told:
            self._told[name, hook] = None
            self._logger.error(
                "The plugin %s has raised in %s; when it does so again, nobody will be told",
                name,
                hook,
                exc_info=error,
            )

    def _charge(self, name: str, started: float) -> None:
        if name in self.seconds:  # else it removed itself just now
            self.seconds[name] += perf_counter() - started


def is_overridden(plugin: Any, base: type[Any], hook: str) -> bool:
    """Whether a plugin has a hook of its own; one of another class has what it defines."""
    if hook in getattr(plugin, "__dict__", {}):
        return True
    own = getattr(type(plugin), hook, None)
    return own is not None and own is not getattr(base, hook, None)


def name_of(plugin: Any, name: str | None = None) -> str:
    """What a plugin is registered as: `name`, or its own, or that of its class and a number."""
    return name or getattr(plugin, "name", None) or f"{type(plugin).__name__}-{uuid4()}"


async def end_hook(name: str, hook: str, method: Callable[..., Any], *args: Any) -> None:
    """Call a hook, and await what it returns.

    Raises:
        HookCancelled: it has let a CancelledError of its own through.
        BaseException: what else it raises.
    """
    try:
        outcome = method(*args)
        if inspect.isawaitable(outcome):
            await outcome
    except asyncio.CancelledError as error:
        if is_our_cancellation(error):
            raise
        raise HookCancelled(name, hook) from error
