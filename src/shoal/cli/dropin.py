"""`shoal dropin`: whether the import name `distributed` leads to shoal, and having it so."""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final

import click

from shoal.cli.options import OneLineGroup
from shoal.errors import ShoalError

_INSTALLING: Final = "shoal.compat.installing"  # by name: what is below must not need old names


@click.group(cls=OneLineGroup)
def dropin() -> None:
    """Whose the import name `distributed` is here: look, or make it shoal's."""


@dropin.command()
def status() -> None:
    """Say what `import distributed` brings; the exit status is 1 unless that is shoal."""
    found = _installing().status()
    click.echo(str(found))
    if not found.is_current:
        raise SystemExit(1)


@dropin.command()
def enable() -> None:
    """Install the drop-in in the place of whatever has the name; nothing is fetched."""
    installing = _installing()
    if not installing.status().is_current:
        try:
            installing.enable()
        except ShoalError as error:
            raise click.ClickException(str(error)) from error
    click.echo(str(installing.status()))


def _installing() -> Any:
    return import_module(_INSTALLING)
