"""What is installed as a command leads to one."""

import importlib
import tomllib
from pathlib import Path

import click
import pytest

ROOT = Path(__file__).resolve().parents[3]


def entry_points():
    for file in ("pyproject.toml", "drop-in/pyproject.toml"):
        project = tomllib.loads((ROOT / file).read_text())["project"]
        groups = {"scripts": project["scripts"], **project.get("entry-points", {})}
        for group, entries in groups.items():
            for name, home in entries.items():
                yield pytest.param(name, home, id=f"{group}: {name}")


@pytest.mark.parametrize(("name", "home"), list(entry_points()))
def test_an_entry_point_is_a_command_of_that_name(name, home):
    module, _, attribute = home.partition(":")
    command = getattr(importlib.import_module(module), attribute)
    assert isinstance(command, click.Command)
    assert command.name == {"shoal": "main"}.get(name, name.removeprefix("dask-"))
