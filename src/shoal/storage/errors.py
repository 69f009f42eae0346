"""What can be wrong with files that are sent to be kept."""

from __future__ import annotations

from shoal.errors import ShoalError


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
