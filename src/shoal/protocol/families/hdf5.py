"""h5py's files, groups and datasets: opened again where they arrive.  Pickle refuses them.

Only what was opened for reading: several processes can't write to one file.
"""

from __future__ import annotations

from typing import Any

import h5py

from shoal.protocol.families.errors import NotReadOnly
from shoal.protocol.families.registry import always, learn


def from_file(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """Where the file is, and how it was opened.

    Raises:
        NotReadOnly: it may be written to.
    """
    if value.mode != "r":
        raise NotReadOnly("HDF5", value.filename)
    return {"filename": value.filename, "mode": value.mode}, []


def to_file(header: dict[str, Any], frames: list[Any]) -> Any:
    """The file, opened here."""
    return h5py.File(header["filename"], mode=header["mode"])


def from_member(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """The file, and where in it a group or dataset is."""
    header, frames = from_file(value.file)
    return header | {"name": value.name}, frames


def to_member(header: dict[str, Any], frames: list[Any]) -> Any:
    """The group or dataset in the file, opened here."""
    return to_file(header, frames)[header["name"]]


def teach() -> None:
    """For the registry."""
    learn(h5py.File, from_file, to_file, when=always)
    learn(h5py.Group, from_member, to_member, when=always)
    learn(h5py.Dataset, from_member, to_member, when=always)
