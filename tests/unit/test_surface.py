"""How names of two packages are compared, and what the list of later names may be."""

from pathlib import Path
from typing import Any

from tools.surface import explained
from tools.surface.compare import Difference, compare, count_names
from tools.surface.look import described
from tools.surface.names import public_names


class Theirs:
    """As it was."""

    def __init__(self, address: str, timeout: float = 1, *, name: str = "x", **more: Any) -> None:
        self.address = address

    def ask(self, what: str, where: str | None = None) -> None:
        """Something."""

    @property
    def state(self) -> str:
        """Something."""
        return ""


class Ours:
    """As it is here."""

    def __init__(self, timeout: float = 2, address: str = "", *, name: str = "x") -> None:
        self.state = ""

    def ask(self, what: str) -> None:
        """Something."""


def shown(cls: type) -> dict[str, Any]:
    # What is looked at has to come from a package that is compared.
    module, cls.__module__ = cls.__module__, "shoal.test"
    try:
        return described(cls)
    finally:
        cls.__module__ = module


def test_a_class_is_compared_to_its_last_parameter() -> None:
    theirs = {"distributed": {"kind": "module"}, "distributed:Thing": shown(Theirs)}
    ours = {"distributed": {"kind": "module"}, "distributed:Thing": shown(Ours)}
    assert sorted(compare(theirs, ours)) == [
        Difference("Thing()", "parameters in another order"),
        Difference("Thing(**more)", "missing"),
        Difference("Thing(timeout=)", "default 1 there, 2 here"),
        Difference("Thing.address", "missing"),
        Difference("Thing.ask(where=)", "missing"),
    ]
    assert list(compare(theirs, theirs)) == []
    assert count_names(theirs) == 11


def test_a_module_that_is_missing_is_one_difference_and_a_class_with_two_homes_another() -> None:
    thing = shown(Theirs)
    theirs = {
        "distributed:Thing": thing,
        "distributed.client": {"kind": "module"},
        "distributed.client:Thing": thing,
        "distributed.core": {"kind": "module"},
        "distributed.core:Server": {"kind": "function", "parameters": []},
    }
    ours = {
        "distributed:Thing": {**thing, "members": {}},
        "distributed.client": {"kind": "module"},
        "distributed.client:Thing": {**thing, "members": {}},
    }
    names = [each.name for each in compare(theirs, ours)]
    assert sorted(names) == ["Thing.address", "Thing.ask", "Thing.state", "core"]


def test_a_difference_arrives_later_or_stays_or_neither_and_idle_rows_are_told() -> None:
    differences = [Difference(name, "missing") for name in ("A", "A.b(c=)", "S.on_x", "Ab", "Z")]
    found = explained.explain(differences, ["S.on_*", "Q.*"], ["A", "Y"])
    assert [each.name for each in found.later] == ["A", "A.b(c=)"]
    assert [each.name for each in found.stays] == ["S.on_x"]
    assert [each.name for each in found.neither] == ["Ab", "Z"]
    assert found.stale == ["Q.*", "Y"]


def test_the_pages_rows_are_read(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("| name | reason |\n|---|---|\n| `a.b`, `c*` | because `d` |\ntext `e` | f\n")
    assert explained.read_patterns(page) == ["a.b", "c*"]


def test_the_list_of_what_comes_later_has_no_name_twice_and_does_not_grow() -> None:
    later = explained.read_later()
    assert len(set(later)) == len(later) <= explained.LATER_MAX


def test_the_names_that_are_compared_hold_the_public_ones() -> None:
    assert {"Client", "wait"} <= set(public_names()["distributed"])
