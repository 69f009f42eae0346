"""What can be wrong with what is kept: names of files that are sent, and results on disk."""

from __future__ import annotations

from shoal.errors import ShoalError
from shoal.units import format_nbytes


class NotAFileName(ShoalError, ValueError):
    """A file or a folder is to be kept under a name that leads elsewhere."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name!r} is no name of a file: it leads out of the folder that uploads are "
            "kept in. Give a plain name, without a path."
        )


class CantHoldResults(ShoalError, TypeError):
    """What a worker is to keep its results in is no mapping, and makes none."""

    def __init__(self, given: object) -> None:
        super().__init__(given)
        self.given = given

    def __str__(self) -> str:
        return (
            f"Results can't be kept in {self.given!r}. Give `data` a MutableMapping, or something "
            "that makes one when it is called, or a pair of that and its keyword arguments."
        )


class DiskTrouble(ShoalError, OSError):
    """A result can't be written to disk at this moment: there is no room, or the disk fails."""

    def __init__(self, folder: str, nbytes: int, nbytes_max: int | None, why: str) -> None:
        """`nbytes`: of all results there; `nbytes_max`: that they may take; `why`: as a clause."""
        super().__init__(folder, nbytes, nbytes_max, why)
        self.folder, self.nbytes, self.nbytes_max, self.why = folder, nbytes, nbytes_max, why

    def __str__(self) -> str:
        most = self.nbytes_max
        share = "" if most is None else f", and {format_nbytes(most)} may be"
        return (
            f"Results can't be spilled to {self.folder}: {self.why}. "
            f"{format_nbytes(self.nbytes)} of them are there{share}. The others stay in memory, "
            "and tasks wait once that is full. Make room there, or name another folder "
            "(local_directory, temporary-directory) or more room (worker.memory.max-spill)."
        )


class FileLost(ShoalError, OSError):
    """The file of a result is missing, or is not what was written."""

    def __init__(self, path: str, what: str) -> None:
        """`what`: is wrong with it, as a clause."""
        super().__init__(path, what)
        self.path, self.what = path, what

    def __str__(self) -> str:
        return (
            f"The spilled result in {self.path} is lost: {self.what}. It is computed again where "
            "that is possible. Nothing but the worker may write there; if nothing did, check the "
            "disk."
        )


class Unwritable(Exception):
    """A value can't be pickled; `why`: what was raised.  For whoever knows whose value it is."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class CantBeSpilled(ShoalError):
    """A result that can't be pickled can't be written to disk."""

    def __init__(self, key: str, kind: str, nbytes: int, why: str) -> None:
        super().__init__(key, kind, nbytes, why)
        self.key, self.kind, self.nbytes, self.why = key, kind, nbytes, why

    def __str__(self) -> str:
        return (
            f"The result of {self.key!r}, a {self.kind} of {format_nbytes(self.nbytes)}, stays in "
            f"memory however full that is, since it can't be pickled: {self.why}. Results that can "
            "be are spilled as usual."
        )


class DiskUntrusted(ShoalError, OSError):
    """Files of results are lost again and again: nothing more is written there."""

    def __init__(self, folder: str, nlost: int, what: str) -> None:
        """`nlost`: files that were lost; `what`: was wrong with the last."""
        super().__init__(folder, nlost, what)
        self.folder, self.nlost, self.what = folder, nlost, what

    def __str__(self) -> str:
        return (
            f"{self.nlost} spilled results in {self.folder} were lost (the last: {self.what}), so "
            "no more are written there for a while: results stay in memory until one that is tried "
            "is taken. Check the disk, and that nothing else removes or writes files there."
        )
