"""Whose the import name `distributed` is in this environment, and making it shoal's."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from shoal.compat import drop_in
from shoal.errors import ShoalError
from shoal.version import DROP_IN_MARK

INSTALL_SECONDS_MAX: Final = 300.0


class CannotInstall(ShoalError, RuntimeError):
    """The drop-in could not be installed."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why

    def __str__(self) -> str:
        return (
            f"The drop-in for `distributed` was not installed: {self.why}\n"
            "Install it in an environment that you may change, with pip or uv."
        )


@dataclass(frozen=True)
class Status:
    """What `import distributed` would bring, and what the installer believes."""

    origin: str
    """The file that would be imported; empty: none."""
    is_ours: bool
    version: str
    """As installed; empty: not at all, or not by an installer."""

    @property
    def is_current(self) -> bool:
        """Whether it is ours, and of the version of the dask beside it."""
        return self.is_ours and self.version in ("", drop_in.version())

    def __str__(self) -> str:
        if not self.origin:
            return "`distributed` is not installed; `shoal dropin enable` makes it lead to shoal"
        whose = "leads to shoal" if self.is_ours else "is another package"
        version = f", version {self.version}" if self.version else ""
        told = f"`distributed` {whose}{version} ({self.origin})"
        if not self.is_ours:
            return f"{told}; `shoal dropin enable` puts shoal in its place"
        if not self.is_current:
            return (
                f"{told}, and dask is of version {drop_in.version().partition('+')[0]}; "
                "`shoal dropin enable` makes them agree"
            )
        return told


def status() -> Status:
    """Look, without importing it."""
    importlib.invalidate_caches()
    spec = importlib.util.find_spec(drop_in.NAME)
    origin = (spec.origin or "") if spec is not None else ""
    is_ours = False
    if origin:
        with open(origin, encoding="utf-8") as module:
            is_ours = DROP_IN_MARK in module.readline()
    try:
        version = importlib.metadata.version(drop_in.NAME)
    except importlib.metadata.PackageNotFoundError:
        version = ""
    return Status(origin, is_ours, version)


def enable(target: Path | None = None) -> None:
    """Install the drop-in in the place of whatever has the name, by pip or uv.

    The installer knows it then as `distributed` of dask's own version, so that what asks for
    `dask[distributed]` later is content.  Nothing is fetched.  Some seconds.

    Args:
        target: a folder instead of this environment.

    Raises:
        CannotInstall: there is no installer, or it failed.
    """
    with tempfile.TemporaryDirectory() as folder:
        wheel = drop_in.write_wheel(Path(folder))
        command = [*_installer(), "--no-deps", "--no-index", "--quiet"]
        command += ["--target", str(target)] if target is not None else []
        try:
            done = subprocess.run(
                [*command, str(wheel)],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=INSTALL_SECONDS_MAX,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CannotInstall(str(error)) from error
    if done.returncode:
        raise CannotInstall((done.stderr or done.stdout).strip())


def _installer() -> list[str]:
    """How a wheel is installed here, even if one of the same version is."""
    if importlib.util.find_spec("pip") is not None:
        command = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
        return [*command, "--force-reinstall", "--root-user-action=ignore"]
    uv = shutil.which("uv")
    if uv is not None:
        return [uv, "pip", "install", "--python", sys.executable, "--reinstall"]
    raise CannotInstall("this environment has neither pip nor uv.")
