"""What the released `distributed` shows and the drop-in does not, or shows otherwise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

PACKAGE = "distributed"
PLACED = ("POSITIONAL_ONLY", "POSITIONAL_OR_KEYWORD")
_STARS = {"VAR_POSITIONAL": "*", "VAR_KEYWORD": "**"}

Parameters = list[dict[str, str]]
Shown = dict[str, dict[str, Any]]


@dataclass(frozen=True, order=True)
class Difference:
    """One thing that a program could trip over.

    `name` is written as in docs/compatibility.md: `Client.submit(actor=)`, `utils.Log`.
    """

    name: str
    what: str


def compare(theirs: Shown, ours: Shown) -> Iterator[Difference]:
    """Every difference once: a class that has two homes is looked at in the first of them."""
    seen: set[str] = set()
    for path, shown in theirs.items():
        name = written(path)
        mine = ours.get(path)
        if mine is None:
            lacking_module = ":" in path and path.partition(":")[0] not in ours
            if not lacking_module or shown["kind"] == "module":
                yield Difference(name, "missing")
            continue
        fingerprint = f"{path.rpartition(':')[2]} {shown}"
        if shown["kind"] == "module" or fingerprint in seen:
            continue
        seen.add(fingerprint)
        yield from _compare_one(name, shown, mine)


def written(path: str) -> str:
    """`distributed:Client` → `Client`; `distributed.utils:Log` → `utils.Log`."""
    module, _, name = path.partition(":")
    below = module.removeprefix(PACKAGE).removeprefix(".")
    return ".".join(part for part in (below, name) if part) or PACKAGE


def _compare_one(name: str, theirs: dict[str, Any], ours: dict[str, Any]) -> Iterator[Difference]:
    kinds = {theirs["kind"], ours["kind"]}
    if len(kinds) > 1 and kinds != {"class", "function"}:
        yield Difference(name, f"a {theirs['kind']} there, a {ours['kind']} here")
        return
    yield from _compare_parameters(name, theirs.get("parameters"), ours.get("parameters"))
    if ours["kind"] != "class":
        return
    for member, shown in theirs.get("members", {}).items():
        mine = ours["members"].get(member)
        if mine is None:
            yield Difference(f"{name}.{member}", "missing")
        elif mine["kind"] == shown["kind"]:
            yield from _compare_parameters(
                f"{name}.{member}", shown.get("parameters"), mine.get("parameters")
            )


def _compare_parameters(
    name: str, theirs: Parameters | None, ours: Parameters | None
) -> Iterator[Difference]:
    """Each parameter is there, may be given in the same place, and has the same default."""
    if theirs is None or ours is None:
        return
    mine = {each["name"]: each for each in ours}
    kinds = {each["kind"] for each in ours}
    for each in theirs:
        stars = _STARS.get(each["kind"])
        if stars is not None:
            if each["kind"] not in kinds:
                yield Difference(f"{name}({stars}{each['name']})", "missing")
            continue
        parameter = f"{name}({each['name']}=)"
        if each["name"] not in mine:
            yield Difference(parameter, "missing")
        elif _is_plainly_other(each["default"], mine[each["name"]]["default"]):
            here = mine[each["name"]]["default"] or "none"
            yield Difference(parameter, f"default {each['default']} there, {here} here")
    if _places(theirs, mine) != _places(ours, mine)[: len(_places(theirs, mine))]:
        yield Difference(f"{name}()", "parameters in another order")


def _places(parameters: Parameters, known: dict[str, dict[str, str]]) -> list[str]:
    """The names that may be given without being named, of those that both have."""
    return [each["name"] for each in parameters if each["kind"] in PLACED and each["name"] in known]


def _is_plainly_other(there: str, here: str) -> bool:
    """Whether two defaults differ so that a program can tell; it may always give what it must."""
    return there not in ("", here) and not there.startswith("<") and not here.startswith("<")


def count_names(shown: Shown) -> int:
    """How many things are compared: names, members, and the parameters of both."""
    seen: set[str] = set()
    total = 0
    for path, each in shown.items():
        fingerprint = f"{path.rpartition(':')[2]} {each}"
        total += 1
        if each["kind"] == "module" or fingerprint in seen:
            continue
        seen.add(fingerprint)
        members = each.get("members", {}).values()
        total += len(members) + sum(len(one.get("parameters") or ()) for one in [each, *members])
    return total
