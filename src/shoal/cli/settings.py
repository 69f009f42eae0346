"""`shoal config`: every setting, its value, where that comes from and what it means."""

from __future__ import annotations

import click
import msgspec

from shoal.cli.errors import BadUsage
from shoal.cli.options import OneLineCommand


@click.command(name="config", cls=OneLineCommand)
@click.argument("word", default="")
@click.pass_context
def settings(context: click.Context, word: str) -> None:
    """Show the settings, or those with WORD in their name, and what each means."""
    from shoal.config import SECTIONS, SettingError, read
    from shoal.config.base import setting_names
    from shoal.config.meaning import meanings
    from shoal.config.reading import set_as

    for section in SECTIONS:
        try:
            values = msgspec.structs.asdict(read(section))
        except SettingError as error:
            raise BadUsage(context.command_path, str(error)) from error
        texts = meanings(section)
        for field, last in setting_names(section).items():
            name = f"{section.path}.{last}"
            if word in name:
                origin = set_as(name) or "the default"
                click.echo(f"shoal.{name}: {values[field]!r} ({origin})\n    {texts[field]}")
