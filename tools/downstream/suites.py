"""Suites of other projects, run unmodified on both sides."""

from __future__ import annotations

import os
import subprocess
import tempfile
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tools.upstream.running import Ended, environment, run_pytest

SUITES = Path(__file__).with_name("suites.toml")
SUITE_SECONDS_MAX = 900
_WHERE = "import importlib.util as u; print(u.find_spec({package!r}).submodule_search_locations[0])"
_LACKING = "import importlib.util as u; print(*[n for n in {names!r} if u.find_spec(n) is None])"
_PLUGINS = ("pytest", "pytest_timeout")


@dataclass(frozen=True)
class Suite:
    """Tests of one project."""

    name: str
    package: str
    files: tuple[str, ...]
    needs: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    folder: str = ""
    """The variable that names the folder of its tests; empty: they are in the package."""
    otherwise: Mapping[str, str] = field(default_factory=dict)
    """Test → one line of reason why it does not pass here."""

    def reason_of(self, name: str) -> str:
        """The line for a test by its whole name; empty if there is none."""
        return self.otherwise.get(name.rpartition("::")[2].partition("[")[0], "")

    def why_not(self, python: str) -> str:
        """What keeps an interpreter from running it; empty: nothing."""
        if self.folder and not os.environ.get(self.folder):
            return f"the variable {self.folder} names no folder with {self.files[0]}"
        names = [*_PLUGINS, self.package, *self.needs]
        lacking = _ask(python, _LACKING.format(names=names))
        return f"it needs {', '.join(lacking.split())}" if lacking else ""

    def paths(self, python: str) -> list[str]:
        """The files."""
        place = os.environ[self.folder] if self.folder else ""
        place = place or _ask(python, _WHERE.format(package=self.package))
        return [str(Path(place) / file) for file in self.files]

    def run(self, python: str, path: tuple[Path, ...] = ()) -> dict[str, list[Ended]]:
        """Run it; how its tests ended, under the suite's name."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
            settings = Path(folder) / "pytest.ini"  # or those of a project around it would hold
            settings.write_text("[pytest]\n", encoding="utf-8")
            arguments = ["-c", str(settings), "-o", "xfail_strict=false", *self.arguments]
            arguments.append("--continue-on-collection-errors")
            ended, death = run_pytest(
                python,
                Path(folder),
                [*arguments, *self.paths(python)],
                path=path,
                seconds_max=SUITE_SECONDS_MAX,
            )
        if death:
            ended.append(Ended("", "failed", 0.0, death))
        return {self.name: ended}


def read_suites(path: Path = SUITES) -> Iterator[Suite]:
    """The suites, in their order."""
    for name, row in tomllib.loads(path.read_text(encoding="utf-8")).items():
        fields: dict[str, Any] = {
            key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
        }
        yield Suite(name, **fields)


def _ask(python: str, code: str) -> str:
    answer = subprocess.run(
        [python, "-P", "-c", code], env=environment(), capture_output=True, text=True, check=True
    )
    return answer.stdout.strip()
