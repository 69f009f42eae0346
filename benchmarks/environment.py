"""The interpreters that are compared: where each side runs, and what it is."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.errors import OracleNotInstalled, SideNotUsable

ROOT = Path(__file__).resolve().parent.parent
ORACLE_FOLDER = ROOT / ".benchmarks" / "oracle"
ORACLE_REQUIREMENTS = ("distributed", "dask[array,dataframe]", "joblib", "psutil")
SIDES = ("distributed", "shoal", "pool")
PROBE = """
import importlib, json, platform, sys
import psutil
module = importlib.import_module(sys.argv[1])
print(json.dumps({
    "module": sys.argv[1],
    "version": getattr(module, "__version__", "?"),
    "python": platform.python_version(),
}))
"""


@dataclass(frozen=True)
class Side:
    """One of the things compared: the module that its interpreter runs the workloads with."""

    name: str
    python: str
    module: str

    def describe(self) -> dict[str, str]:
        """Versions of the module and of Python; raises `SideNotUsable`."""
        module = "concurrent.futures" if self.module == "pool" else self.module
        found = subprocess.run(
            # -P: what lies in the current folder must not be taken for an installed module.
            [self.python, "-P", "-c", PROBE, module],
            capture_output=True,
            text=True,
            check=False,
        )
        if found.returncode:
            raise SideNotUsable(self.python, module, found.stderr)
        described: dict[str, str] = json.loads(found.stdout)
        return described


def ensure_oracle(
    folder: Path = ORACLE_FOLDER, requirements: Sequence[str] = ORACLE_REQUIREMENTS
) -> str:
    """The interpreter of an environment with the released `distributed`, made if need be.

    Takes about half a minute and asks the package index the first time; raises
    `OracleNotInstalled` with what the failed step said.
    """
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    complete = folder / "complete"  # written last, so that half an environment is made again
    written = "\n".join(requirements) + "\n"
    if complete.exists() and complete.read_text() == written:  # else it lacks what came since
        return str(python)
    steps = {
        "venv": [sys.executable, "-m", "venv", "--clear", str(folder)],
        "pip install": [str(python), "-m", "pip", "install", "--quiet", *requirements],
    }
    for name, command in steps.items():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise OracleNotInstalled(str(folder), name, done.stdout + done.stderr)
    complete.write_text(written)
    return str(python)


def make_sides(
    names: tuple[str, ...] = SIDES,
    *,
    oracle: str | None = None,
    shoal: str | None = None,
    module: str = "shoal",
) -> list[Side]:
    """The sides called `names`.

    `oracle` and `shoal` are interpreters: by default the environment of `ensure_oracle`, and the
    running one.  `module` takes shoal's place; with `distributed` there, and the same interpreter
    twice, the noise of the machine is measured.
    """
    made: list[Side] = []
    for name in names:
        if name == "distributed":
            made.append(Side(name, oracle or ensure_oracle(), "distributed"))
        elif name == "shoal":
            made.append(Side(name, shoal or sys.executable, module))
        else:
            made.append(Side(name, shoal or sys.executable, "pool"))
    return made


def describe_machine() -> dict[str, Any]:
    """Processors, system and load: absolute values mean something on this machine only."""
    return {
        "kind": "machine",
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "load": load(),
    }


def load() -> float:
    """The mean number of runnable threads of the last minute; 0 where it is not known."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else 0.0


def child_environment() -> dict[str, str]:
    """Environment of a measured process: this package importable, Dask's settings at defaults."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    kept["PYTHONPATH"] = str(ROOT)
    return kept
