"""Packages that are installed where the cluster runs: in the scheduler, and beside each worker.

On one host one installation runs at a time, whoever asks for it: they write to the same place.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import importlib
import logging
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from dask.base import tokenize

from shoal.observe.errors import InstallFailed
from shoal.observe.hooks import NannyPlugin, SchedulerPlugin, WorkerPlugin

logger: Final = logging.getLogger("shoal.diagnostics.plugin")


class InstallPlugin(SchedulerPlugin):
    """Calls a function that installs something: in the scheduler, and once beside each worker.

    Where a worker has a nanny it is called there, and else in the worker.  Workers that come later
    have it called before their first task.
    """

    idempotent = True

    def __init__(self, install_fn: Callable[[], None], restart_workers: bool) -> None:
        """`install_fn` can be pickled; `restart_workers`: start those with a nanny anew."""
        self.install_fn = install_fn
        self.restart_workers = restart_workers
        self.name = f"{type(self).__name__}-{uuid4()}"
        self._scheduler: Any = None

    async def start(self, scheduler: Any) -> None:
        """Install it everywhere.  Raises what the function raises; nothing is registered then."""
        self._scheduler = scheduler
        await asyncio.to_thread(install, self.install_fn)
        beside = _InstallInNanny(self.install_fn, self.name, restart=self.restart_workers)
        inside = _InstallInWorker(self.install_fn, self.name)
        try:
            await scheduler.register_nanny_plugin(None, beside, self.name)
            await scheduler.register_worker_plugin(None, inside, self.name)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Workers to come need not install it any more, unless another takes its place."""
        if self._scheduler.plugins.get(self.name) not in (None, self):
            return
        for plugins in (self._scheduler.nanny_plugins, self._scheduler.worker_plugins):
            plugins.pop(self.name, None)


class _InstallInNanny(NannyPlugin):
    """Installs beside a worker."""

    idempotent = True

    def __init__(self, install_fn: Callable[[], None], name: str, *, restart: bool) -> None:
        self.install_fn = install_fn
        self.name = name
        self.restart = restart

    async def setup(self, nanny: Any) -> None:
        """Install it."""
        await asyncio.to_thread(install, self.install_fn)


class _InstallInWorker(WorkerPlugin):
    """Installs in a worker that has no nanny."""

    idempotent = True

    def __init__(self, install_fn: Callable[[], None], name: str) -> None:
        self.install_fn = install_fn
        self.name = name

    async def setup(self, worker: Any) -> None:
        """Install it."""
        if worker.ask_nanny is None:
            await asyncio.to_thread(install, self.install_fn)


class PipInstall(InstallPlugin):
    """Installs packages by pip."""

    def __init__(
        self,
        packages: list[str],
        pip_options: list[str] | None = None,
        restart_workers: bool = False,
    ) -> None:
        """Nothing happens before it is registered.

        Args:
            packages: as pip takes them; variables of the environment in them are filled in there.
            pip_options: of `pip install`.
            restart_workers: start workers anew, since they may have imported an older version.
        """
        installer = Pip(packages, pip_options or [])
        super().__init__(installer, restart_workers)
        self.name = f"pip-install-{tokenize(packages, pip_options, restart_workers)}"


class CondaInstall(InstallPlugin):
    """Installs packages by conda."""

    def __init__(
        self,
        packages: list[str],
        conda_options: list[str] | None = None,
        restart_workers: bool = False,
    ) -> None:
        """Nothing happens before it is registered.

        Args:
            packages: as conda takes them.
            conda_options: of `conda install`.
            restart_workers: start workers anew, since they may have imported an older version.
        """
        installer = Conda(packages, conda_options or [])
        super().__init__(installer, restart_workers)
        self.name = f"conda-install-{tokenize(packages, conda_options, restart_workers)}"


class Pip:
    """Calls pip for these packages."""

    def __init__(self, packages: list[str], options: list[str]) -> None:
        self.packages, self.options = packages, options

    def __call__(self) -> None:
        """Install them.  Raises InstallFailed, a RuntimeError."""
        logger.info("pip installing the following packages: %s", self.packages)
        with tempfile.TemporaryDirectory() as folder:
            wanted = Path(folder, "requirements.txt")
            wanted.write_text("\n".join(self.packages))
            process = subprocess.Popen(
                [sys.executable, "-m", "pip", "install", *self.options, "-r", str(wanted)],
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            _, errors = process.communicate()
            code = process.wait()
        if code:
            raise _failed("pip", errors.decode(errors="replace").strip())


class Conda:
    """Calls conda for these packages."""

    def __init__(self, packages: list[str], options: list[str]) -> None:
        self.packages, self.options = packages, options

    def __call__(self) -> None:
        """Install them.  Raises InstallFailed, a RuntimeError."""
        logger.info("conda installing the following packages: %s", self.packages)
        try:
            conda: Any = importlib.import_module("conda.cli.python_api")
        except ImportError as error:
            raise _failed("conda", "conda could not be found in this environment") from error
        try:
            command = [*self.options, *self.packages]
            _, errors, code = conda.run_command(conda.Commands.INSTALL, command)
        except Exception as error:
            raise _failed("conda", str(error)) from error
        if code:
            text = errors.decode(errors="replace") if isinstance(errors, bytes) else str(errors)
            raise _failed("conda", text.strip())


def install(function: Callable[[], None]) -> None:
    """Call a function that installs, while no other process of this user does; it may take long."""
    with _alone():
        function()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Hold a lock of this host, which goes with its holder."""
    path = Path(tempfile.gettempdir()) / f"shoal-install-{os.getuid()}.lock"
    # Whatever others have put under that name is not followed, and nothing is written to it.
    opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield
    finally:
        os.close(opened)


def _failed(tool: str, why: str) -> InstallFailed:
    logger.error("%s install failed: %s", tool, why)
    return InstallFailed(tool, why)
