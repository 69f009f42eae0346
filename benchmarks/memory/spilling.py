"""Data of twice a worker's limit: made, and summed three times."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.memory.programs import Found, Ground

NPASSES = 3
RESULT_SECONDS_MAX = 60.0
SLOW_SECONDS = 0.1
FULL_SECONDS = 1.5


def make(number: int, nbytes: int) -> Any:
    """Half of it chance, half one number: as compressible as what people have."""
    import numpy as np

    values = np.empty(nbytes // 8)
    half = len(values) // 2
    np.random.default_rng(number).random(out=values[:half])
    values[half:] = number
    return values


def total(values: Any) -> int:
    """The sum of their bits, exact wherever they lie: all of them are read."""
    return int(values.view("u8").sum())


def digest(values: Any) -> str:
    """Every byte counts."""
    return hashlib.blake2b(values, digest_size=16).hexdigest()


def spilling(
    ground: Ground, limit_bytes: int, nblocks: int, threads: int, is_limited: bool = True
) -> Found:
    """Seconds for all of it, on one worker; the sums are compared with those of plain numpy.

    Without a limit nothing is spilled, and what else there is can be told apart.
    """
    nbytes = 2 * limit_bytes // nblocks
    with ground.client(1, threads, limit_bytes if is_limited else 0) as client:
        client.submit(total, client.submit(make, -1 % 97, nbytes=8000)).result()
        started_at = time.monotonic()
        blocks = client.map(make, range(nblocks), nbytes=nbytes, pure=False)
        sums = []
        for _ in range(NPASSES):
            futures = client.map(total, blocks, pure=False)
            sums.append(client.gather(futures))
            del futures
        seconds = time.monotonic() - started_at
        expected = [total(make(n, nbytes)) for n in range(nblocks)]
        yield {"compute_seconds": seconds, "right": sums == [expected] * NPASSES}
        files, nbytes_of_files = spilled(ground.folder)
        yield {"nfiles": files, "file_bytes": nbytes_of_files}


def spilled(folder: Path) -> tuple[int, int]:
    """Files that workers have below `folder` now, and their bytes."""
    found = [path.stat().st_size for path in files_in(folder)]
    return len(found), sum(found)


def files_in(folder: Path) -> list[Path]:
    """The files that hold values: those of some size."""
    found = []
    for above, _, names in os.walk(folder):
        for name in names:
            path = Path(above) / name
            try:
                if path.stat().st_size > 100_000:
                    found.append(path)
            except OSError:
                continue  # it was removed meanwhile
    return sorted(found)


def torn(path: Path) -> None:
    """The second half is missing."""
    os.truncate(path, path.stat().st_size // 2)


def flipped(path: Path) -> None:
    """One bit in the middle is another."""
    with path.open("r+b") as opened:
        opened.seek(path.stat().st_size // 2)
        [byte] = opened.read(1)
        opened.seek(-1, os.SEEK_CUR)
        opened.write(bytes([byte ^ 16]))


def deleted(path: Path) -> None:
    """It is gone."""
    path.unlink()


SPOILERS = {"torn": torn, "flipped": flipped, "deleted": deleted}


def refuse_space(dask_worker: Any, is_full: bool) -> None:
    """Let no file of this process grow beyond 64 kB, or let it again."""
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (65536 if is_full else hard, hard))


_plain: dict[str, Any] = {}


def slow_down(dask_worker: Any, folder: str, seconds: float) -> None:
    """Have whatever is asked of the system about paths in `folder` take so much longer."""
    for name in ("open", "replace", "rename", "unlink", "stat"):
        plain = _plain.setdefault(name, getattr(os, name))

        def slow(path: Any, *args: Any, plain: Any = plain, **options: Any) -> Any:
            if folder in str(path):
                time.sleep(seconds)
            return plain(path, *args, **options)

        setattr(os, name, slow if seconds else plain)


def spoiling(
    ground: Ground, limit_bytes: int, nblocks: int, kinds: list[str], nrounds: int
) -> Found:
    """Rounds in which files of spilled values are spoilt, or can't be written, or only slowly.

    Each value that is then read has to be the right one, by a task on the worker that held it.
    """
    nbytes = int(1.5 * limit_bytes) // nblocks
    expected = [digest(make(n, nbytes)) for n in range(nblocks)]
    counts = {kind: {"right": 0, "wrong": 0, "failed": 0, "hung": 0, "spoilt": 0} for kind in kinds}
    errors: list[str] = []
    with ground.client(1, 2, limit_bytes) as client:
        for _ in range(nrounds):
            for kind in kinds:
                count = counts[kind]
                _hinder(client, ground, kind, is_hindered=True)
                blocks = client.map(make, range(nblocks), nbytes=nbytes, pure=False)
                if kind == "full":  # what memory can't hold waits until the disk has room again
                    time.sleep(FULL_SECONDS)
                    _hinder(client, ground, kind, is_hindered=False)
                ended = _ended(client, blocks, errors)
                if ended:
                    count[ended] += 1
                    _hinder(client, ground, kind, is_hindered=False)
                    continue
                if kind in SPOILERS:
                    count["spoilt"] += _spoil(SPOILERS[kind], ground.folder)
                else:
                    count["spoilt"] += 1
                digests = client.map(digest, blocks, pure=False)
                ended = _ended(client, digests, errors)
                if not ended:
                    ended = "right" if client.gather(digests) == expected else "wrong"
                count[ended] += 1
                del blocks, digests
                _hinder(client, ground, kind, is_hindered=False)
    yield {"counts": counts, "errors": errors[:3]}


def _hinder(client: Any, ground: Ground, kind: str, *, is_hindered: bool) -> None:
    if kind == "full":
        client.run(refuse_space, is_full=is_hindered)
    elif kind == "slow":
        seconds = SLOW_SECONDS if is_hindered else 0.0
        client.run(slow_down, folder=str(ground.folder), seconds=seconds)


def _ended(client: Any, futures: list[Any], errors: list[str]) -> str:
    """How waiting for `futures` ended, if not with their results."""
    from concurrent.futures import TimeoutError as Timeout

    ends_at = time.monotonic() + RESULT_SECONDS_MAX
    for future in futures:
        try:
            error = future.exception(timeout=max(0.1, ends_at - time.monotonic()))
        except (TimeoutError, Timeout):
            return "hung"
        if error is not None:
            errors.append(f"{type(error).__name__}: {str(error)[:200]}")
            return "failed"
    return ""


def _spoil(spoiler: Any, folder: Path) -> int:
    """Spoil every second file of a value; how many."""
    number = 0
    for path in files_in(folder)[::2]:
        try:
            spoiler(path)
            number += 1
        except (OSError, ValueError):
            continue  # removed or replaced as it was looked at
    return number
