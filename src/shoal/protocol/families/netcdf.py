"""netCDF4's datasets, groups and variables: opened again where they arrive.  Pickle refuses them.

Only what was opened for reading: several processes can't write to one file.
"""

from __future__ import annotations

from typing import Any, Final

import netCDF4

from shoal.protocol.families.errors import NotReadOnly
from shoal.protocol.families.registry import always, learn

_NOWHERE: Final = "no attribute of this name"


def from_dataset(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """Where the file is.

    Raises:
        NotReadOnly: it may be written to.
    """
    if _is_writeable(value):
        raise NotReadOnly("netCDF", value.filepath())
    return {"filename": value.filepath()}, []


def to_dataset(header: dict[str, Any], frames: list[Any]) -> Any:
    """The dataset, opened here."""
    return netCDF4.Dataset(header["filename"], mode="r")


def from_group(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """The file, and where in it the group is."""
    root = value
    while root.parent is not None:
        root = root.parent
    header, frames = from_dataset(root)
    return header | {"path": value.path}, frames


def to_group(header: dict[str, Any], frames: list[Any]) -> Any:
    """The group, in the file opened here."""
    dataset = to_dataset(header, frames)
    path = header["path"].strip("/")
    return dataset[path] if path else dataset


def from_variable(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """The file, the group, and the variable's name there."""
    header, frames = from_group(value.group())
    return header | {"name": value.name}, frames


def to_variable(header: dict[str, Any], frames: list[Any]) -> Any:
    """The variable, in the file opened here."""
    return to_group(header, frames).variables[header["name"]]


def _is_writeable(dataset: Any) -> bool:
    """Asked by renaming what isn't there: netCDF4 keeps to itself how a dataset was opened."""
    try:
        dataset.renameAttribute(_NOWHERE, _NOWHERE + "2")
    except Exception as error:
        return "read only" not in str(error).lower()
    return True


def teach() -> None:
    """For the registry."""
    learn(netCDF4.Dataset, from_dataset, to_dataset, when=always)
    learn(netCDF4.Group, from_group, to_group, when=always)
    learn(netCDF4.Variable, from_variable, to_variable, when=always)
