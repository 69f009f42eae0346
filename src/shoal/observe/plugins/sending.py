"""Files and folders that are sent to where the cluster runs, those that come later included."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from shoal.observe.errors import UnknownMode
from shoal.observe.hooks import NannyPlugin, SchedulerPlugin, WorkerPlugin
from shoal.observe.status import Status
from shoal.storage.scratch import make_scratch, remove_scratch
from shoal.storage.uploads import (
    add_to_path,
    forget_path,
    keep_file,
    keep_folder,
    pack_folder,
)

MODES: Final = ("workers", "scheduler", "all")


def _is_compiled(path: str) -> bool:
    return os.path.splitext(path)[1] == ".pyc"


class UploadFile(WorkerPlugin):
    """Sends a file to every worker, and imports it if it is a module or an archive of modules."""

    def __init__(self, filepath: str, load: bool = True) -> None:
        """Read the file.  Raises OSError.  `load`: import it."""
        self.filename = os.path.basename(filepath)
        self.name = f"upload-file-{self.filename}"
        self.load = load
        self.content = Path(filepath).read_bytes()

    async def setup(self, worker: Any) -> None:
        """Keep it.  Raises what its modules raise."""
        await worker.upload_file(self.filename, self.content, load=self.load)

    def teardown(self, worker: Any) -> None:
        """Look there no more, if the folder is about to go; else what was sent stays."""
        if worker.status not in (Status.running, Status.paused):
            forget_path(worker.local_directory)


class _InScheduler(SchedulerPlugin):
    """Has a folder in the scheduler's process."""

    replaces = True  # another one of its name is no mistake: it has newer files

    def __init__(self) -> None:
        self._folder = ""

    def _make_folder(self) -> str:
        self._folder = self._folder or make_scratch()
        return self._folder

    async def start(self, scheduler: Any) -> None:
        """Send what it has.  Raises what its modules raise; nothing is left then."""
        try:
            await self._send(scheduler)
        except BaseException:
            await self.close()
            raise

    async def _send(self, scheduler: Any) -> None:
        """Send what it has."""

    async def close(self) -> None:
        """The folder goes with the scheduler, or as another takes the place of this."""
        if self._folder:
            forget_path(self._folder)
            remove_scratch(self._folder)
            self._folder = ""


class SchedulerUploadFile(SchedulerPlugin):
    """Sends a file to the scheduler, and imports it if it is a module or an archive of modules."""

    replaces = True  # another one of its name is no mistake: it has a newer file

    def __init__(self, filepath: str, load: bool = True) -> None:
        """Read the file.  Raises OSError.  `load`: import it."""
        self.filename = os.path.basename(filepath)
        self.name = f"upload-file-{self.filename}"
        self.load = load
        self.content = Path(filepath).read_bytes()

    async def start(self, scheduler: Any) -> None:
        """Keep it.  Raises what its modules raise."""
        self._scheduler = scheduler
        keep_file(scheduler.local_directory, self.filename, self.content, load=self.load)

    async def close(self) -> None:
        """Look there no more, if the folder is about to go; else what was sent stays."""
        if self._scheduler.status is not Status.running:
            forget_path(self._scheduler.local_directory)


class UploadDirectory(_InScheduler):
    """Sends a folder with all that is in it."""

    def __init__(
        self,
        path: str,
        restart_workers: bool = False,
        update_path: bool = False,
        skip_words: Sequence[str] = (".git", ".github", ".pytest_cache", "tests", "docs"),
        skip: Sequence[Callable[[str], bool]] = (_is_compiled,),
        mode: str = "workers",
        restart: bool | None = None,
    ) -> None:
        """Pack it.

        Args:
            path: the folder; its name is that of the package that can be imported.
            restart_workers: start workers that have a nanny anew.
            update_path: look for modules in the folder itself, too.
            skip_words: files with such a part in their path are left out.
            skip: asked with each file's path; True leaves it out.
            mode: whom to send it to: "workers", "scheduler" or "all".
            restart: what `restart_workers` was called before.

        Raises:
            UnknownMode: another mode (a ValueError).
            NotADirectoryError: there is no such folder.
        """
        super().__init__()
        if mode not in MODES:
            raise UnknownMode(mode, MODES)
        self.mode = mode
        self.restart_workers = restart_workers if restart is None else restart
        self.update_path = update_path
        self.folder_name = os.path.basename(os.path.abspath(path))
        self.name = f"upload-directory-{self.folder_name}"
        self.content = pack_folder(path, skip_words, skip)

    async def _send(self, scheduler: Any) -> None:
        """Send it."""
        if self.mode in ("scheduler", "all"):
            unpack(self._make_folder(), self.folder_name, self.content, self.update_path)
        if self.mode in ("workers", "all"):
            inside = _KeepFolder(self.name, self.folder_name, self.content, self.update_path)
            await scheduler.register_worker_plugin(None, inside, self.name)
            if self.restart_workers:
                beside = Anew(f"{self.name}-{uuid4()}")
                await scheduler.register_nanny_plugin(None, beside, beside.name)
                scheduler.nanny_plugins.pop(beside.name, None)  # later ones start with it


class _KeepFolder(WorkerPlugin):
    """Unpacks a folder at a worker."""

    def __init__(self, name: str, folder_name: str, content: bytes, update_path: bool) -> None:
        self.name = name
        self.folder_name, self.content, self.update_path = folder_name, content, update_path

    def setup(self, worker: Any) -> None:
        """Unpack it."""
        unpack(worker.local_directory, self.folder_name, self.content, self.update_path)
        worker.reload_codes()

    def teardown(self, worker: Any) -> None:
        """Look there no more, if the folder is about to go; else what was sent stays."""
        if worker.status not in (Status.running, Status.paused):
            forget_path(worker.local_directory)


class Anew(NannyPlugin):
    """Has workers started anew, once."""

    restart = True

    def __init__(self, name: str) -> None:
        self.name = name


def unpack(folder: str, name: str, content: bytes, update_path: bool) -> None:
    """Unpack an archive below `folder`; `update_path`: look for modules in it as well."""
    path = keep_folder(folder, name, content)
    if update_path:
        add_to_path(path)
