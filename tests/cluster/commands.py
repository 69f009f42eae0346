"""Commands as processes, for tests: started in a home of their own, listened to, and ended."""

import contextlib
import os
import subprocess
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from unittest import mock

from tests.programs import DROP_IN, ROOT, STRICT, path_with

SECONDS_MAX = 30.0

MODULE_OF_COMMAND = "import runpy, sys; command = sys.argv.pop(1); " + (
    "runpy.run_module('distributed.cli.dask_' + command, run_name='__main__', alter_sys=True)"
)
FACES = {
    "shoal": (*STRICT, "-m", "shoal"),
    "dask": (*STRICT, "-m", "dask"),
    "module": (*STRICT, "-c", MODULE_OF_COMMAND),
}
"""How a command may be called: ours, dask's, and that of the historical modules."""


def variables(home: Path) -> dict[str, str]:
    """An environment in which a user with another home would be, and the drop-in installed."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("XDG_")}
    path = path_with(_metadata(home), DROP_IN, ROOT)
    return {**kept, "HOME": str(home), "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def _metadata(home: Path) -> Path:
    """A folder with what pip would write about the drop-in, for those who look for commands."""
    project = tomllib.loads((DROP_IN.parent / "pyproject.toml").read_text())["project"]
    folder = home / ".site" / f"distributed-{project['version']}.dist-info"
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / "METADATA").write_text(f"Name: distributed\nVersion: {project['version']}\n")
        entries = project["entry-points"]["dask_cli"]
        lines = [f"{name} = {home_of}" for name, home_of in entries.items()]
        (folder / "entry_points.txt").write_text("\n".join(["[dask_cli]", *lines, ""]))
    return folder.parent


@contextlib.contextmanager
def environment(home: Path) -> Iterator[None]:
    """This process has that home meanwhile."""
    with mock.patch.dict(os.environ, variables(home), clear=True):
        yield


class Command:
    """One that runs."""

    def __init__(
        self, face: Sequence[str], arguments: Sequence[str], home: Path, **added: str
    ) -> None:
        """`added`: to the environment."""
        self._process = subprocess.Popen(
            [*face, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=home,
            env={**variables(home), **added},
            start_new_session=True,
        )
        self.pid = self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self._process.poll() is None

    def line(self) -> str:
        """The next line it prints; if there is none, why."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, self.end()
        return line.rstrip("\n")

    def lines(self) -> list[str]:
        """All that it prints until it ends."""
        assert self._process.stdout is not None
        return self._process.stdout.read().splitlines()

    def signal(self, number: int) -> None:
        """Send it a signal."""
        self._process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Wait until it has ended; its exit code, and what it wrote to stderr."""
        _, errors = self._process.communicate(timeout=SECONDS_MAX)
        return self._process.returncode, errors

    def kill(self) -> None:
        """End it if it still runs."""
        if self.is_alive:
            self._process.kill()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()
        self._process.wait()
