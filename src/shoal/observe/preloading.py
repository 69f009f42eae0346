"""Preloads: code of the user's that runs in a service before it does anything else.

A preload is a module's name, a `.py` file, a URL, or a piece of Python.  It is executed as its
service is made; then its `dask_setup(service)` is called as that starts, and its
`dask_teardown(service)` as that closes.  Both may be missing, be coroutine functions, or be click
commands, which are given the preload's arguments.  What these two raise is logged and stops nobody.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import logging
import os
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from time import sleep
from typing import Any, Final, overload

from shoal.observe.errors import PreloadFailed
from shoal.observe.hooking import end_hook

logger = logging.getLogger("shoal.preloading")

SETUP: Final = "dask_setup"
TEARDOWN: Final = "dask_teardown"

TEARDOWN_SECONDS_MAX: Final = 10.0
"""What all preloads of a service may take as it closes, if nothing else is said."""

DOWNLOAD_SECONDS_MAX: Final = 30.0
"""Without a byte from the server."""

TRIES: Final = 3
"""Of a download, where the server says that it is overloaded."""

PAUSE_SECONDS: Final = 0.5
"""Before the second try; twice as long before each further one."""

BUSY: Final = frozenset((429, 502, 503, 504))
"""Answers of a server that will do better in a moment."""


class Preload:
    """One preload of one service."""

    def __init__(
        self, dask_object: Any, name: str, argv: Iterable[str], file_dir: str | None
    ) -> None:
        """Execute it.

        Args:
            dask_object: the scheduler, worker, nanny or client.
            name: a module, a file, a URL, or Python.
            argv: for a `dask_setup` that is a click command.
            file_dir: where a file is copied to, so that others can import it; None: nowhere.

        Raises:
            ImportError, PreloadFailed, BaseException: it can't be found, or raises itself.
        """
        self.dask_object = dask_object
        self.name = name
        self.argv = list(argv)
        self.file_dir = file_dir
        logger.info("Creating preload: %s", name)
        if is_webaddress(name):
            self.module = _download(name)
        else:
            self.module = _load(name, file_dir)

    async def start(self) -> None:
        """Call its `dask_setup`."""
        setup = getattr(self.module, SETUP, None)
        if setup is None:
            return
        callback = getattr(setup, "callback", None)
        if callback is None:
            logger.info("Run preload setup: %s", self.name)
            outcome = setup(self.dask_object)
        else:
            context = setup.make_context(SETUP, list(self.argv), allow_extra_args=False)
            logger.info("Run preload setup: %s", self.name)
            outcome = callback(self.dask_object, *context.args, **context.params)
        if inspect.isawaitable(outcome):
            await outcome

    async def teardown(self) -> None:
        """Call its `dask_teardown`."""
        teardown = getattr(self.module, TEARDOWN, None)
        if teardown is not None:
            logger.info("Run preload teardown: %s", self.name)
            outcome = teardown(self.dask_object)
            if inspect.isawaitable(outcome):
                await outcome


class Preloads(Sequence[Preload]):
    """All preloads of one service, in their order."""

    def __init__(self, preloads: list[Preload]) -> None:
        self._preloads = preloads
        self._started: list[Preload] = []

    async def start(self) -> None:
        """Call each `dask_setup`; what one raises is logged."""
        for preload in self._preloads:
            self._started.append(preload)
            try:
                await end_hook(preload.name, SETUP, preload.start)
            except Exception:
                logger.exception("Failed to start preload: %s", preload.name)

    async def teardown(self, seconds: float = TEARDOWN_SECONDS_MAX) -> None:
        """Call `dask_teardown` of each that was started; what one raises is logged.

        Args:
            seconds: what they may take together; what takes longer is cut short.
        """
        deadline = asyncio.get_running_loop().time() + seconds
        started, self._started = self._started, []
        for preload in started:
            try:
                async with asyncio.timeout_at(deadline) as patience:
                    await end_hook(preload.name, TEARDOWN, preload.teardown)
            except Exception:
                if patience.expired():
                    logger.warning(
                        "The teardown of the preload %s is cut short: all together may take %.3g s",
                        preload.name,
                        seconds,
                    )
                else:
                    logger.exception("Failed to tear down preload: %s", preload.name)

    @overload
    def __getitem__(self, index: int) -> Preload: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Preload]: ...

    def __getitem__(self, index: int | slice) -> Preload | Sequence[Preload]:
        return self._preloads[index]

    def __iter__(self) -> Iterator[Preload]:
        return iter(self._preloads)

    def __len__(self) -> int:
        return len(self._preloads)


def process_preloads(
    dask_server: Any,
    preload: str | Sequence[str],
    preload_argv: Sequence[Any] | None,
    *,
    file_dir: str | None = None,
) -> Preloads:
    """Execute preloads for a service that is being made.

    Args:
        preload: one, or several.
        preload_argv: a list of arguments for all of them, or one list for each.
        file_dir: where files are copied to.

    Raises:
        PreloadFailed: the lists of arguments are not as many as the preloads.
        ImportError, BaseException: one can't be found, or raises.
    """
    names = [preload] if isinstance(preload, str) else list(preload)
    given = list(preload_argv or ())
    if given and not isinstance(given[0], str):
        if len(given) != len(names):
            why = f"there are {len(names)} preloads, and {len(given)} lists of arguments"
            raise PreloadFailed(", ".join(names), why)
        arguments = [list(some) for some in given]
    else:
        arguments = [list(given) for _ in names]
    return Preloads(
        [
            Preload(dask_server, name, some, file_dir)
            for name, some in zip(names, arguments, strict=True)
        ]
    )


def validate_preload_argv(context: Any, option: Any, value: Any) -> Any:
    """The click callback of arguments that are left over: they need a preload to take them."""
    import click  # only commands need it

    if not value:
        return value
    if context.params.get("preload") or context.params.get("preload_nanny"):
        return value
    options = [word for word in value if word.startswith("-")]
    if options:
        raise click.NoSuchOption(options[0], ctx=context)
    plural = "s" if len(value) > 1 else ""
    raise click.UsageError(
        f"Got unexpected extra argument{plural} ({' '.join(value)}): such are for --preload, "
        "which comes before it",
        context,
    )


def is_webaddress(text: str) -> bool:
    """Whether it is to be downloaded."""
    return text.startswith(("http://", "https://"))


def _load(name: str, folder: str | None) -> types.ModuleType:
    """A module by its name, from a file, or of a text."""
    if name.endswith(".py"):
        return _load_file(name, folder)
    if " " in name or "\n" in name:
        return _module_of(name, f"<preload {name.splitlines()[0][:40]!r}>")
    return importlib.import_module(name)


def _load_file(path: str, folder: str | None) -> types.ModuleType:
    """Load a file anew, under its own name, from `folder` if there is one."""
    source, file = os.path.abspath(path), os.path.basename(path)
    if not os.path.isfile(source):
        raise PreloadFailed(path, "there is no such file")
    place = os.path.dirname(source)
    if folder is not None:
        place = folder
        copy = os.path.join(folder, file)
        if os.path.abspath(copy) != source:
            from shoal.storage.uploads import keep_file  # only here, as it is rare

            # Whole at any moment: services that begin together in one folder copy and load it too.
            with open(source, "rb") as opened:
                keep_file(folder, file, opened.read(), load=False)
    if place not in sys.path:
        sys.path.insert(0, place)
    importlib.invalidate_caches()
    sys.modules.pop(file.removesuffix(".py"), None)
    return importlib.import_module(file.removesuffix(".py"))


def _download(url: str) -> types.ModuleType:
    """A module from the network.  Raises OSError: it can't be had."""
    import urllib.error  # some ten milliseconds, and few need them
    import urllib.request

    logger.info("Downloading preload at %s", url)
    pause_seconds = PAUSE_SECONDS
    for number in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(url, timeout=DOWNLOAD_SECONDS_MAX) as answer:
                text = answer.read().decode()
                break
        except urllib.error.HTTPError as error:
            if error.code not in BUSY or number == TRIES:
                raise
        sleep(pause_seconds)
        pause_seconds *= 2
    return _module_of(text, url)


def _module_of(text: str, name: str) -> types.ModuleType:
    """A module that has this text."""
    module = types.ModuleType(name)
    module.__file__ = name
    exec(compile(text, name, "exec"), module.__dict__)
    return module
