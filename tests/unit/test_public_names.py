"""The package's face: every public name exists, is known to editors, and loads on first use."""

import ast
from pathlib import Path

import pytest

import shoal


def test_editors_see_exactly_the_names_that_load() -> None:
    tree = ast.parse(Path(shoal.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {alias.asname: node.module for node in block.body for alias in node.names}  # type: ignore[attr-defined]
    assert seen == shoal._HOME


@pytest.mark.parametrize("name", sorted(shoal._HOME))
def test_a_public_name_loads_from_its_home(name: str) -> None:
    value = getattr(shoal, name)
    assert value is getattr(shoal, name)
    assert name in dir(shoal)


def test_names_that_are_not_built_load_but_are_not_shown() -> None:
    assert shoal.CompatibleExecutor is shoal.CompatibleExecutor
    assert "CompatibleExecutor" not in dir(shoal)


def test_any_other_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'shoal' has no attribute 'Sheduler'"):
        shoal.Sheduler  # noqa: B018 -- asking is the test


def test_the_version_is_a_version() -> None:
    assert shoal.__version__.split(".")[0].isdigit()
