"""The two surfaces, each seen by its own interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tools.surface.names import names_by_module

ROOT = Path(__file__).resolve().parents[2]
LOOK = Path(__file__).with_name("look.py")
OURS = (ROOT / "src", ROOT / "drop-in" / "src")
LOOK_SECONDS_MAX = 120


def surface_of(python: str, *path: Path) -> dict[str, Any]:
    """`version` and `found` of the package that `python` has; modules in `path` come first.

    Raises:
        subprocess.CalledProcessError: it has none.
    """
    environ = {name: value for name, value in os.environ.items() if not name.startswith("DASK_")}
    environ["PYTHONPATH"] = os.pathsep.join(map(str, path))
    with tempfile.TemporaryDirectory() as folder:
        names = Path(folder) / "names.json"
        names.write_text(json.dumps(names_by_module()), encoding="utf-8")
        answer = subprocess.run(
            [python, "-P", str(LOOK), str(names)],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=LOOK_SECONDS_MAX,
            check=True,
        )
    shown: dict[str, Any] = json.loads(answer.stdout)
    return shown


def our_surface() -> dict[str, Any]:
    """Of the drop-in of this checkout."""
    return surface_of(sys.executable, *OURS)
