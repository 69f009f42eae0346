"""What a section of settings is, and the limits that values may have."""

from typing import ClassVar, Final

import msgspec
from msgspec import Meta

Positive: Final = Meta(gt=0)
AtLeastZero: Final = Meta(ge=0)
Fraction: Final = Meta(ge=0, le=1)


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="kebab"):
    """One section; `path` is where it lies below `shoal.`."""

    path: ClassVar[str] = ""


def setting_names(section: type[Settings]) -> dict[str, str]:
    """The section's settings: each field → what it is called in files, without its path."""
    return {field.name: field.encode_name for field in msgspec.structs.fields(section)}
