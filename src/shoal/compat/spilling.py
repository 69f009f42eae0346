"""`distributed.spill`: mappings that keep on disk what is too much for memory, for programs.

Workers keep their results by other means (`storage/spill.py`), by threads; here whoever stores a
value waits until others have been written.  `Worker(data=...)` takes such a mapping, too.
"""

from __future__ import annotations

import errno
import logging
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any, Final, Literal, Protocol, runtime_checkable
from urllib.parse import quote

from shoal import config
from shoal.compat.serialising.errors import CannotSpill
from shoal.protocol.payload import kind_of, nbytes_of
from shoal.storage.disk import Disk
from shoal.storage.errors import Unwritable
from shoal.storage.results import SpilledSize
from shoal.storage.spill import Spill
from shoal.storage.spilled import Spilled
from shoal.worker.shell.introduction import accepted_ways

_logger: Final = logging.getLogger("shoal.spill")

_FULL: Final = (errno.EDQUOT, errno.ENOSPC)


@runtime_checkable
class ManualEvictProto(Protocol):
    """What a worker needs of a mapping of the user's that can be told to spill."""

    @property
    def fast(self) -> Any:
        """The values in memory; false if there are none."""

    def evict(self) -> int:
        """Write one value to disk; returns its size in memory, -1 if that can't be."""


class AnyKeyFile(MutableMapping[Any, Any]):
    """Bytes in files of a folder, by keys of any kind; files that are there already are not seen.

    Cost: reading or writing a file, in the calling thread.
    """

    def __init__(self, directory: str | os.PathLike[str], memmap: bool = False) -> None:
        """`memmap`: values are views of the mapped files, which must not change."""
        self.directory, self.memmap = os.fspath(directory), memmap
        self.filenames: dict[Any, str] = {}
        self._nmade = 0
        Path(self.directory).mkdir(parents=True, exist_ok=True)

    def __setitem__(self, key: Any, value: Any) -> None:
        parts = value if isinstance(value, list | tuple) else [value]
        self._nmade += 1
        name = file_name_of(key, self._nmade)
        path = os.path.join(self.directory, name)
        with open(path, "wb") as file:
            for part in parts:
                file.write(part)
        older, self.filenames[key] = self.filenames.get(key), name
        if older is not None:
            os.unlink(os.path.join(self.directory, older))

    def __getitem__(self, key: Any) -> bytearray | memoryview:
        path = os.path.join(self.directory, self.filenames[key])
        if self.memmap:
            import mmap

            with open(path, "r+b") as mapped:
                if not os.fstat(mapped.fileno()).st_size:
                    return memoryview(bytearray())
                return memoryview(mmap.mmap(mapped.fileno(), 0, access=mmap.ACCESS_COPY))
        with open(path, "rb") as file:
            return bytearray(file.read())

    def __delitem__(self, key: Any) -> None:
        os.unlink(os.path.join(self.directory, self.filenames.pop(key)))

    def __contains__(self, key: object) -> bool:
        return key in self.filenames

    def __iter__(self) -> Iterator[Any]:
        return iter(self.filenames)

    def __len__(self) -> int:
        return len(self.filenames)


def file_name_of(key: Any, number: int) -> str:
    """What the file of a key is called: the key, as far as a name may say it, and a number."""
    return f"{quote(str(key), safe='')[:200]}#{number}"


class _ByKey(Disk):
    """A folder whose files are called by the keys of what they keep."""

    key: Any = ""

    def name_of(self, number: int) -> str:
        return file_name_of(self.key, number)


class InMemory(dict[Any, Any]):
    """The values in memory, and how large they are."""

    def __init__(self) -> None:
        super().__init__()
        self.weights: dict[Any, int] = {}
        self.order: OrderedDict[Any, None] = OrderedDict()
        """Their keys, the least recently used first."""
        self.total_weight = 0
        """Bytes of all together."""

    def keep(self, key: Any, value: Any, weight: int) -> None:
        """A new value of so many bytes."""
        self[key] = value
        self.weights[key] = weight
        self.order[key] = None
        self.total_weight += weight

    def forget(self, key: Any) -> None:
        """Let go of a value, if it is here."""
        self.pop(key, None)
        self.order.pop(key, None)
        self.total_weight -= self.weights.pop(key, 0)


class OnDisk(MutableMapping[Any, Any]):
    """The values on disk: reading one costs a file, and does not keep it in memory."""

    def __init__(self, directory: str, nbytes_max: int | None) -> None:
        wanted = config.read(config.Memory).spill_compression
        self._disk = _ByKey(lambda: _made(directory), nbytes_max)
        self._spill = Spill(self._disk, [] if wanted is None else accepted_ways(wanted))
        self._spilled: dict[Any, Spilled] = {}
        self._nbytes = self._disk_nbytes = 0  # of all together

    @property
    def weight_by_key(self) -> dict[Any, SpilledSize]:
        """Size of each value, in memory and on disk."""
        return {k: SpilledSize(s.nbytes, s.disk_nbytes) for k, s in self._spilled.items()}

    @property
    def total_weight(self) -> SpilledSize:
        """Of all together."""
        return SpilledSize(self._nbytes, self._disk_nbytes)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._disk.key = key
        spilled = self._spill.write(value, nbytes_of(value))
        spilled.remember(value)
        self.pop(key, None)
        self._spilled[key] = spilled
        self._count(spilled, 1)

    def __getitem__(self, key: Any) -> Any:
        spilled = self._spilled[key]
        value = self._spill.load(spilled)
        spilled.remember(value)
        return value

    def __delitem__(self, key: Any) -> None:
        spilled = self._spilled.pop(key)
        self._count(spilled, -1)
        self._spill.remove(spilled)

    def _count(self, spilled: Spilled, change: int) -> None:
        self._nbytes += change * spilled.nbytes
        self._disk_nbytes += change * spilled.disk_nbytes

    def pop(self, key: Any, default: Any = None) -> Any:
        """Remove a value, which is not read for that; returns `default`."""
        if key in self._spilled:
            del self[key]
        return default

    def __contains__(self, key: object) -> bool:
        return key in self._spilled

    def __iter__(self) -> Iterator[Any]:
        return iter(self._spilled)

    def __len__(self) -> int:
        return len(self._spilled)


def _made(directory: str) -> str:
    Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
    return directory


class SpillBuffer(MutableMapping[Any, Any]):
    """Keeps so many bytes of values in memory, and the least recently used of the others on disk.

    A value that is asked for comes back to memory, unless it alone is too large for that.  Files
    are checked as those of workers are.  For one thread at a time.
    """

    def __init__(
        self, spill_directory: str, target: int, max_spill: int | Literal[False] = False
    ) -> None:
        """`target`: bytes in memory; `max_spill`: bytes on disk; False: as the disk has."""
        self._target = target
        self.fast: InMemory = InMemory()
        self.slow = OnDisk(os.fspath(spill_directory), max_spill or None)
        self._slow_uncached = self.slow  # by which distributed's tests look at it

    @property
    def memory(self) -> InMemory:
        """What is in memory."""
        return self.fast

    @property
    def disk(self) -> OnDisk:
        """What is on disk."""
        return self.slow

    @property
    def spilled_total(self) -> SpilledSize:
        """How much is on disk."""
        return self.slow.total_weight

    def evict(self) -> int:
        """Write the least recently used value to disk; returns its size in memory, -1: it stays."""
        if not self.fast:
            return -1
        key = next(iter(self.fast.order))
        value, weight = self.fast[key], self.fast.weights[key]
        if not self._try(key, lambda: self.slow.__setitem__(key, value)):
            self.fast.order.move_to_end(key)
            return -1
        self.fast.forget(key)
        return weight

    def __setitem__(self, key: Any, value: Any) -> None:
        """Keep it.

        Raises:
            CannotSpill: it is too large for memory, and can't be pickled (a TypeError).
        """
        self._forget(key)
        weight = nbytes_of(value)
        if weight > self._target:
            try:
                self.slow[key] = value
                return
            except Unwritable as error:
                raise _told(key, value, error) from error
            except OSError as error:
                _log_refusal(error)
        self._keep(key, value, weight)

    def __getitem__(self, key: Any) -> Any:
        if key in self.fast:
            self.fast.order.move_to_end(key)
            return self.fast[key]
        value = self.slow[key]
        weight = nbytes_of(value)
        if weight <= self._target:
            del self.slow[key]
            self._keep(key, value, weight)
        return value

    def __delitem__(self, key: Any) -> None:
        if key not in self:
            raise KeyError(key)
        self._forget(key)

    def __contains__(self, key: object) -> bool:
        return key in self.fast or key in self.slow

    def __iter__(self) -> Iterator[Any]:
        return iter([*self.fast, *self.slow])

    def __len__(self) -> int:
        return len(self.fast) + len(self.slow)

    def _keep(self, key: Any, value: Any, weight: int) -> None:
        self.fast.keep(key, value, weight)
        for _ in range(len(self.fast)):
            if self.fast.total_weight <= self._target or self.evict() < 0:
                return

    def _forget(self, key: Any) -> None:
        self.fast.forget(key)
        self.slow.pop(key)

    def _try(self, key: Any, write: Callable[[], object]) -> bool:
        """Write a value; whether that was possible, else it is told why it stays in memory."""
        try:
            write()
        except Unwritable as error:
            _logger.error("%s", _told(key, self.fast[key], error), exc_info=error)
        except OSError as error:
            _log_refusal(error)
        else:
            return True
        return False


def _told(key: Any, value: object, error: Unwritable) -> CannotSpill:
    return CannotSpill(key, kind_of(value), error.why)


def _log_refusal(error: OSError) -> None:
    what = "disk reached capacity" if error.errno in _FULL else "Spill to disk failed"
    _logger.warning("%s; what was to go there stays in memory: %s", what, error)
