"""Folders for what tasks leave on disk: each tells whose it is, so that others can remove it."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Final

import dask.config

_SETTING: Final = "temporary-directory"
_ATTEMPTS_MAX: Final = 10


def scratch_parent(config: dict[str, Any] | None = None, given: str | None = None) -> Path:
    """Where this user's scratch folders are: below the setting `temporary-directory`, if any.

    Args:
        config: of another process, whose folders are looked for; None: our own.
        given: a folder to be used in place of what is set.
    """
    config = dask.config.config if config is None else config
    parent = given or dask.config.get(_SETTING, None, config=config) or tempfile.gettempdir()
    return Path(str(parent)) / f"dask-scratch-space-{os.getuid()}"


def name_scratch(given: str | None = None) -> str:
    """Where a new folder of this process could be; `given`: see `scratch_parent`."""
    parent = scratch_parent(given=given)
    return str(parent / f"{_prefix(os.getpid())}{secrets.token_hex(6)}")


def make_scratch(folder: str = "") -> str:
    """A new folder of this process, that others can't enter.

    Args:
        folder: as `name_scratch` named it; "": a new one.

    Raises:
        OSError: it can't be made.
    """
    folder = folder or name_scratch()
    parent = Path(folder).parent
    for _ in range(_ATTEMPTS_MAX):
        parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            os.mkdir(folder, mode=0o700)
        except FileNotFoundError:
            pass  # whoever had the last folder there has just removed the parent
        else:
            return folder
    raise FileNotFoundError(f"{parent} is removed as soon as it is made")


def remove_scratch(folder: str) -> None:
    """Remove a folder and, if it was the last one, their parent; what can't be removed stays."""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        os.rmdir(os.path.dirname(folder))
    except OSError:
        pass  # there are others, or somebody was faster


def remove_scratch_of(pid: int, parent: Path) -> None:
    """Remove the folders of a process that has ended and could not do it.

    Args:
        parent: as `scratch_parent` has it for that process.

    Cost: one look at the parent; then as long as it takes to remove what is there.
    """
    for folder in parent.glob(f"{_prefix(pid)}*"):
        remove_scratch(str(folder))


def _prefix(pid: int) -> str:
    return f"worker-{pid}-"


class Scratch:
    """A folder for what tasks leave, made when somebody looks for it; for any thread."""

    def __init__(self, given: str | None) -> None:
        """`given`: a folder of somebody's, which stays; None: one of our own."""
        self._given = given
        self._named = ""
        self._is_made = False
        self._within_given = ""  # of our own, in somebody's
        self._making = threading.Lock()  # tasks of several threads may look at once

    @property
    def where(self) -> str:
        """Where it is, or will be."""
        if self._given is not None:
            return self._given
        if not self._named:
            self._named = name_scratch()
        return self._named

    def path(self) -> str:
        """Where it is."""
        with self._making:
            if self._given is None and not self._is_made:
                make_scratch(self.where)
                self._is_made = True
            return self.where

    def storage(self) -> str:
        """A folder for results that make room in memory: ours alone, and removed at the end.

        Raises:
            OSError: it can't be made.
        """
        if self._given is None:
            parent = self.path()
        else:
            with self._making:
                if not self._within_given:
                    self._within_given = make_scratch(name_scratch(self._given))
                parent = self._within_given
        folder = Path(parent) / "storage"
        folder.mkdir(mode=0o700, exist_ok=True)
        return str(folder)

    def remove(self) -> None:
        """Remove what is ours."""
        if self._is_made:
            remove_scratch(self.where)
        if self._within_given:
            remove_scratch(self._within_given)
