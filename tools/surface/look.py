"""What a package named `distributed` shows: exports, classes, methods, parameters, as JSON.

    python tools/surface/look.py NAMES.json > surface.json

Runs in an interpreter that need have nothing but the package: this one's, or one with the released
`distributed`.  `NAMES.json` is module → names to look at there; `"*"` stands for its `__all__`.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import sys
import textwrap
import warnings
from collections.abc import Iterator
from typing import Any

PACKAGE = "distributed"
OURS = "shoal"
OPAQUE = "<...>"
"""Stands for every default that only its own module can name: sentinels, functions, types."""

FIXTURE = "FixtureFunctionDefinition"

_PLAIN = (bool, int, float, str, bytes, type(None))


def look(names_by_module: dict[str, list[str]]) -> dict[str, Any]:
    """Everything that can be compared, by `module:name`."""
    found: dict[str, Any] = {}
    for module_name, names in names_by_module.items():
        module = load(module_name)
        if module is None:
            continue
        found[module_name] = {"kind": "module"}
        for name in names_of(module, names):
            value = read(module, name)
            if value is not MISSING:
                found[f"{module_name}:{name}"] = described(value)
    return found


MISSING = object()


def load(name: str) -> Any:
    """The module, or None if there is none (whatever it raised as it was imported)."""
    try:
        return importlib.import_module(name)
    except Exception:  # a module may fail as it likes; it is missing then
        return None


def names_of(module: Any, names: list[str]) -> list[str]:
    """The names to look at, with `"*"` replaced by what a star import would bring."""
    stars = list(getattr(module, "__all__", ())) if "*" in names else []
    return sorted({*stars, *names} - {"*"})


def read(module: Any, name: str) -> Any:
    """What the module has under that name, or MISSING."""
    try:
        return getattr(module, name)
    except Exception:  # a stand-in may raise what it likes
        return MISSING


def described(value: Any) -> dict[str, Any]:
    """A class with its members, something to call with its parameters, or just a value."""
    if inspect.isclass(value):
        return {
            "kind": "class",
            "parameters": parameters_of_class(value),
            "members": dict(members_of(value)),
        }
    if type(value).__name__ == FIXTURE:  # its parameters are other fixtures, by name
        return {"kind": "function", "parameters": None}
    if callable(value):
        return {"kind": "function", "parameters": parameters_of(value)}
    return {"kind": "module" if inspect.ismodule(value) else "value"}


def members_of(cls: type) -> Iterator[tuple[str, dict[str, Any]]]:
    """Public members, those of the language and of foreign bases left out."""
    for name in sorted(dir(cls)):
        if name.startswith("_") or is_foreign(cls, name):
            continue
        value = inspect.getattr_static(cls, name)
        if isinstance(value, (staticmethod, classmethod)):
            value = getattr(cls, name)
            yield name, {"kind": "function", "parameters": parameters_of(value)}
        elif callable(value) and not inspect.isclass(value):
            yield name, {"kind": "function", "parameters": parameters_of(value, bound=True)}
        else:
            yield name, {"kind": "value"}
    for name in sorted(given_at_birth(cls) - set(dir(cls))):
        yield name, {"kind": "value"}


def given_at_birth(cls: type) -> set[str]:
    """Public attributes that the constructors of a class of shoal's set; others are not read."""
    found: set[str] = set()
    for base in cls.__mro__:
        birth = vars(base).get("__init__")
        if birth is None or base.__module__.partition(".")[0] != OURS:
            continue
        if getattr(getattr(birth, "__code__", None), "co_filename", "") == "<string>":
            found |= set(base.__dict__.get("__dataclass_fields__", ()))  # written by `dataclass`
            continue
        tree = ast.parse(textwrap.dedent(inspect.getsource(birth)))
        found |= {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Store)
            and isinstance(node.value, ast.Name)
            and node.value.id == "self"
        }
    return {name for name in found if not name.startswith("_")}


def is_foreign(cls: type, name: str) -> bool:
    """Whether a member comes from a base of another project (`dict.items`, `Enum.name`)."""
    for base in cls.__mro__:
        if name in vars(base):
            return base.__module__.partition(".")[0] not in (PACKAGE, OURS)
    return True


def parameters_of_class(cls: type) -> list[dict[str, str]] | None:
    """Of what makes an instance; of `__init__` if something that takes anything stands before."""
    found = parameters_of(cls)
    if found and all(each["kind"].startswith("VAR_") for each in found):
        return parameters_of(vars(cls).get("__init__", cls.__init__), bound=True) or found
    return found


def parameters_of(function: Any, bound: bool = False) -> list[dict[str, str]] | None:
    """Name, kind and default of each; None if nobody can tell.  `bound`: without the first."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return None
    return [
        {"name": each.name, "kind": each.kind.name, "default": default_text(each)}
        for each in parameters[1 if bound and parameters else 0 :]
    ]


def default_text(parameter: inspect.Parameter) -> str:
    """The default as it would be written, if it can be; empty if there is none."""
    default = parameter.default
    if default is parameter.empty:
        return ""
    return repr(default) if is_plain(default) else OPAQUE


def is_plain(value: Any) -> bool:
    """Whether a default means the same on both sides."""
    if isinstance(value, str):
        return not value.startswith("__")  # dask's sentinel is a text
    if type(value) in (tuple, list):
        return all(type(item) in _PLAIN for item in value)
    return type(value) in _PLAIN or value in ({}, frozenset())


def main() -> None:
    """Read the names, print what is found."""
    with open(sys.argv[1], encoding="utf-8") as opened:
        names_by_module = json.load(opened)
    package = load(PACKAGE)
    version = str(getattr(package, "__version__", "none"))
    print(json.dumps({"version": version, "found": look(names_by_module)}))


if __name__ == "__main__":
    main()
