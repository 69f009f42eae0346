"""`python -m benchmarks.memory.programs --module MODULE --folder FOLDER NAME OPTIONS`.

One program on one side: prints lines of JSON, each with what it found by name; an error is a line
as well, and exit code 1.  OPTIONS are keyword arguments in JSON.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROGRAMS = {
    "mixed": "mixed",
    "annotated": "annotated",
    "offered_nowhere": "annotated",
    "heavy": "heavy",
    "reducing": "reducing",
    "spilling": "spilling",
    "spoiling": "spilling",
    "moving": "moving",
    "growing": "growing",
    "exchanging": "exchanging",
    "joining": "joining",
    "breaking": "breaking_exchange",
}
"""Program → the module of this package that has it, as a function of that name."""

Found = Iterator[dict[str, Any]]


@dataclass(frozen=True)
class Ground:
    """What a program stands on."""

    module: Any
    """`shoal` or `distributed`; only its public names are used."""
    folder: Path
    """For files of the workers."""

    @contextmanager
    def client(self, nworkers: int, threads: int, limit: Any, **options: Any) -> Iterator[Any]:
        """A client with a cluster of processes that are watched; it is Dask's default."""
        inside = str(Path(__file__).with_name("inside.py"))
        with (
            self.module.LocalCluster(
                n_workers=nworkers,
                threads_per_worker=threads,
                processes=True,
                memory_limit=limit,
                dashboard_address=None,
                local_directory=str(self.folder),
                preload=[inside],
                **options,
            ) as cluster,
            self.module.Client(cluster) as client,
        ):
            client.wait_for_workers(nworkers)
            print(json.dumps({"pids": sorted(client.run(os.getpid).values())}), flush=True)
            yield client


def main() -> int:
    """Run the program, and print what it finds as soon as it is known."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--module", required=True)
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("options", type=json.loads)
    options = parser.parse_args()
    home = importlib.import_module(f"benchmarks.memory.{PROGRAMS[options.program]}")
    program: Callable[..., Found] = getattr(home, options.program)
    ground = Ground(importlib.import_module(options.module), options.folder)
    try:
        for found in program(ground, **options.options):
            print(json.dumps(found), flush=True)
    except Exception as error:
        traceback.print_exc()
        print(json.dumps({"failure": f"{type(error).__name__}: {str(error)[:400]}"}), flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
