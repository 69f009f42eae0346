"""What is not built can be imported, derived from and caught; calling it is refused by name."""

import importlib
import pickle

import pytest

import shoal
from shoal.compat import unbuilt
from shoal.compat.paths import PATHS
from shoal.errors import UnsupportedOption


@pytest.mark.parametrize("name", sorted(unbuilt.UNBUILT))
def test_a_name_is_refused_as_it_is_called_with_what_to_do_instead(name: str) -> None:
    stand_in = getattr(unbuilt, name)
    assert stand_in is getattr(unbuilt, name)
    assert stand_in.__name__ == name
    with pytest.raises(UnsupportedOption, match=rf"^{name}.* is not supported .*[.)]$"):
        stand_in(1, "x", name="y")


def test_a_class_can_be_derived_from_and_is_refused_by_its_own_name() -> None:
    derived = type("OurExecutor", (unbuilt.CompatibleExecutor,), {"__init__": lambda self: None})
    with pytest.raises(UnsupportedOption, match=r"^CompatibleExecutor is not"):
        derived()
    assert not isinstance(1, unbuilt.CompatibleExecutor)


def test_a_stand_in_travels_by_its_name() -> None:
    for name in ("CompatibleExecutor", "get_task_stream"):
        stand_in = getattr(unbuilt, name)
        assert pickle.loads(pickle.dumps(stand_in)) is stand_in


def test_what_is_built_has_left_the_table() -> None:
    assert sorted(unbuilt.UNBUILT.keys() & shoal._HOME) == []
    for module, names in PATHS.items():
        for name in unbuilt.UNBUILT.keys() & names.keys():
            where = names[name].partition(":")[0]
            assert importlib.import_module(where) is unbuilt, f"{module}.{name}"


@pytest.mark.parametrize("name", sorted(unbuilt.TABLES))
def test_a_table_that_nobody_reads_refuses_entries_and_is_empty(name: str) -> None:
    table = getattr(unbuilt, name)
    assert {**table} == {}
    assert pickle.loads(pickle.dumps(table)) is table
    for enter in (
        lambda: table.__setitem__("cpu", len),
        lambda: table.update(cpu=len),
        lambda: table.setdefault("cpu", len),
        lambda: table.__ior__({"cpu": len}),
    ):
        with pytest.raises(UnsupportedOption, match=f"^An entry of {name} is not .* a plugin"):
            enter()
    assert table == {}
