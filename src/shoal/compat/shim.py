"""How a module of the drop-in becomes a window onto shoal: what is read, set or deleted there is
read, set or deleted where it lives, so that a patch through an old name has its effect."""

from __future__ import annotations

import difflib
import importlib
import importlib.abc
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final

from shoal.compat.defaults import enter_defaults
from shoal.compat.log_settings import heed_configuration
from shoal.compat.paths import PACKAGE, PATHS, public_names
from shoal.compat.unbuilt import UNBUILT

_MISSING: Final = object()
_SECOND_PREFIX: Final = "dask."
"""`dask.distributed.client` is found by the package's path, and must be the same module."""


class NotMapped(ModuleNotFoundError):
    """A module, or a name, of `distributed` was asked for that shoal does not have.

    Which of the two it was nobody can tell: `from distributed import x` looks for a module at last.
    """

    def __init__(self, module: str) -> None:
        super().__init__(module, name=module)
        self.module = module

    def __reduce__(self) -> tuple[Any, ...]:
        return NotMapped, (self.module,)

    def __str__(self) -> str:
        return (
            f"This version of shoal has no `{self.module.rpartition('.')[2]}`: {self.module!r} is "
            f"missing from its drop-in for the package `distributed`.\n"
            f"{_near(self.module)}"
            "If a program needs more, install the released `distributed` in its place."
        )


def _near(missing: str) -> str:
    """The names beside a missing one that are spelt like it, in a line, if there are any."""
    module, _, name = missing.rpartition(".")
    modules = [path.rpartition(".")[2] for path in PATHS if path.rpartition(".")[0] == module]
    names = [known for known in PATHS.get(module, ()) if known not in UNBUILT]
    by_lower_case = {known.lower(): known for known in (*modules, *names)}
    near = difflib.get_close_matches(name.lower(), by_lower_case)
    likely = ", ".join(by_lower_case[found] for found in near)
    return f"Names like it in {module}: {likely}.\n" if likely else ""


class Window(ModuleType):
    """A module whose mapped names live elsewhere."""

    def __reduce__(self) -> tuple[Any, ...]:
        """By name: functions that travel by value refer to modules, which this kind must allow."""
        return importlib.import_module, (self.__name__,)

    def __getattr__(self, name: str) -> Any:
        old = self.__dict__["_old"]
        home = PATHS[old].get(name)
        if home is not None:
            return _read(home)
        if f"{old}.{name}" in PATHS:
            return importlib.import_module(f"{old}.{name}")
        raise AttributeError(
            f"module {old!r} has no attribute {name!r}: it is shoal's drop-in for `distributed`, "
            f"and this version of shoal has no `{name}`"
        )

    def __setattr__(self, name: str, value: Any) -> None:
        home = PATHS[self.__dict__["_old"]].get(name)
        if home is None:
            super().__setattr__(name, value)
        elif not _is_submodule(self.__dict__["_old"], name, value):
            self.__dict__["_originals"].setdefault(name, _read(home))
            module, _, attribute = home.partition(":")
            setattr(importlib.import_module(module), attribute, value)

    def __delattr__(self, name: str) -> None:
        """Undo what was set; what was never set can't be deleted."""
        originals = self.__dict__["_originals"]
        original = originals.pop(name, _MISSING)
        if original is not _MISSING:
            module, _, attribute = PATHS[self.__dict__["_old"]][name].partition(":")
            setattr(importlib.import_module(module), attribute, original)
        else:
            super().__delattr__(name)

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *PATHS[self.__dict__["_old"]]})


class _Unmapped(importlib.abc.MetaPathFinder):
    """The last finder: says what is there, instead of only what is not."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Never finds anything; explains that for modules of `distributed`."""
        old = fullname.removeprefix(_SECOND_PREFIX)
        if old.startswith(PACKAGE + ".") and old not in PATHS:
            raise NotMapped(old)
        return None


def become(name: str) -> None:
    """Make the module `name`, which is being imported, a window."""
    old = name.removeprefix(_SECOND_PREFIX)
    if name != old:
        sys.modules[name] = importlib.import_module(old)
        return
    module = sys.modules[name]
    module.__dict__.setdefault("_originals", {})
    module.__dict__.update(_old=old, __all__=public_names(old))
    module.__class__ = Window
    if old == PACKAGE:
        enter_defaults()
        heed_configuration()
    if not any(isinstance(finder, _Unmapped) for finder in sys.meta_path):
        sys.meta_path.append(_Unmapped())


def _read(home: str) -> Any:
    module, _, attribute = home.partition(":")
    found = importlib.import_module(module)
    return getattr(found, attribute) if attribute else found


def _is_submodule(old: str, name: str, value: Any) -> bool:
    """Whether the import system binds a module to its package, which must not hide a name."""
    return isinstance(value, ModuleType) and sys.modules.get(f"{old}.{name}") is value
