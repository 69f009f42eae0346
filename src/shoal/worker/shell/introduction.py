"""What a worker's machine is told of the worker as it starts, and where its results may go."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol

from shoal import config
from shoal.observe.installed import told_versions
from shoal.storage.results import Results, ResultsView
from shoal.storage.scratch import Scratch
from shoal.worker.model.entities import NEVER, MachineSettings

if TYPE_CHECKING:
    from shoal.storage.disk import Disk
    from shoal.storage.spill import Spill

WRITABLE_NBYTES_MIN: Final = 4096
"""A smaller result takes no less room on disk, and what is known of its file takes some in memory;
but nothing is too small that is a hundredth of what may be in memory."""


WRITING_BYTES_MAX: Final = 256_000_000
WRITING_SHARE: Final = 8
"""On their way to disk at once are no more than the one, and than the other part of the limit."""


class Introduced(Protocol):
    """A worker that is about to register."""

    address: str
    nthreads: int
    memory_limit: int
    results: Results
    is_watched: bool

    @property
    def name(self) -> object:
        """What it is called."""

    @property
    def predecessor(self) -> Mapping[str, Any]:
        """Whose place it takes."""


def machine_settings(
    worker: Introduced, settings: config.Worker, memory: config.Memory, *, local_directory: str
) -> MachineSettings:
    """Who the worker is, and how much it does at once."""
    return MachineSettings(
        address=worker.address,
        name=str(worker.name),
        nthreads=worker.nthreads,
        memory_limit=worker.memory_limit,
        pid=os.getpid(),
        host=socket.gethostname(),
        resources=dict(settings.resources),
        has_nanny=worker.is_watched,
        versions=told_versions(),
        local_directory=local_directory,
        **worker.predecessor,
        transfers_max=settings.transfers_out_max,
        transfer_bytes_max=settings.transfer_bytes_max,
        incoming_bytes_max=int((memory.transfer_ratio or 0.0) * worker.memory_limit) or NEVER,
        writing_bytes_max=min(WRITING_BYTES_MAX, worker.memory_limit // WRITING_SHARE),
        writable_nbytes_min=(
            NEVER if worker.results.is_given else writable_nbytes_min(worker.memory_limit, memory)
        ),
    )


def results_of(data: Any, folder: Scratch) -> tuple[Results, Mapping[Any, Any]]:
    """Where results are kept, and how they are looked at; `data`: as a worker was given it.

    Raises:
        CantHoldResults: that is nothing to keep results in (a TypeError).
    """
    if data is None:
        results = Results()
        return results, ResultsView(results)
    from shoal.storage.given import GivenResults, mapping_of

    mapping = mapping_of(data, folder.path)
    return GivenResults(mapping), mapping


def target_bytes(results: Results, memory_limit: int, memory: config.Memory) -> int:
    """What results may take in memory; 0: as much as there are."""
    return 0 if results.is_given else int((memory.target_ratio or 0.0) * memory_limit)


def writable_nbytes_min(memory_limit: int, memory: config.Memory) -> int:
    """From which size on results may be written to disk."""
    if not memory_limit or not (memory.target_ratio or memory.spill_ratio):
        return NEVER
    return max(1, min(WRITABLE_NBYTES_MIN, memory_limit // 100))


def spill_maker(
    folder: Scratch, memory: config.Memory, disk_type: type[Disk] | None
) -> Callable[[], Spill]:
    """Makes what writes results to disk, when the first is to be written.

    `disk_type`: what files are written by; None: `Disk`.

    Raises:
        SettingError: they are to be compressed by what is not installed.
    """
    wanted = memory.spill_compression
    compressions: list[str] = []
    if wanted not in (None, "auto"):
        compressions = accepted_ways(wanted)  # at once, since that can be wrong

    def make() -> Spill:
        from shoal.storage.disk import Disk
        from shoal.storage.spill import Spill

        kind = Disk if disk_type is None else disk_type
        found = accepted_ways("auto") if wanted == "auto" else compressions
        return Spill(kind(folder.storage, memory.spill_bytes_max), found)

    return make


def accepted_ways(wanted: str) -> list[str]:
    """By what results are compressed; see `Memory.spill_compression`.

    Raises:
        SettingError: it is not installed.
    """
    from shoal.protocol.compression import accepted

    try:
        return accepted(wanted)
    except ImportError as error:
        raise config.SettingError(
            config.full_name_of("worker.memory.spill-compression"),
            f"it is {wanted!r}, and that is not installed ({error})",
            "Install it (pip install lz4 zstandard), or say 'auto', which takes what is there.",
        ) from error
