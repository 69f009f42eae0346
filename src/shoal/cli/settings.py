"""`shoal config`: every setting, its value, where that comes from and what it means."""

from __future__ import annotations

import click
import msgspec

from shoal.cli.errors import BadUsage, NoSuchSetting
from shoal.cli.options import OneLineCommand


@click.command(name="config", cls=OneLineCommand)
@click.argument("word", default="")
@click.pass_context
def settings(context: click.Context, word: str) -> None:
    """Show the settings, or those with WORD in their name, and what each means."""
    from shoal.config import SECTIONS, SettingError, read
    from shoal.config.base import setting_names
    from shoal.config.legacy import LEGACY
    from shoal.config.meaning import meanings
    from shoal.config.misspelt import nearest
    from shoal.config.origins import Origins
    from shoal.config.telling import refuse_unknown_sections, unknown
    from shoal.config.unheeded import UNHEEDED

    try:
        refuse_unknown_sections()
    except SettingError as error:
        raise BadUsage(context.command_path, str(error)) from error
    origins, names = Origins(), []
    for section in SECTIONS:
        try:
            values = msgspec.structs.asdict(read(section))
        except SettingError as error:
            raise BadUsage(context.command_path, str(error)) from error
        texts = meanings(section)
        for field, last in setting_names(section).items():
            name = f"{section.path}.{last}"
            names.append(f"shoal.{name}")
            if word in name:
                click.echo(f"shoal.{name}: {values[field]!r} ({origins.of(name)})")
                click.echo(f"    {texts[field]}{_not_yet(name)}")
    _show_unheeded(word)
    names += [f"distributed.{old}" for old in (*LEGACY, *UNHEEDED)]
    if not any(word in name for name in [*names, *dict(unknown())]):
        raise NoSuchSetting(word, nearest(word, names))


def _show_unheeded(word: str) -> None:
    """Settings of `distributed` that are no settings here: those that are set, or asked for; and
    what is set there and is none."""
    import dask.config

    from shoal.config.telling import is_same, unknown
    from shoal.config.unheeded import UNHEEDED

    for old, entry in UNHEEDED.items():
        name = f"distributed.{old}"
        value = dask.config.get(name, default=entry.default)
        if word in name and (word or not is_same(value, entry.default)):
            click.echo(f"{name}: {value!r} (changes nothing)\n    {entry.why}")
    for name, said in unknown():
        if word in name:
            click.echo(f"{name}: {dask.config.get(name)!r} (changes nothing)\n    {said}")


def _not_yet(name: str) -> str:
    """What is so until the setting is heeded."""
    from shoal.config.unheeded import NOT_YET

    return f"  Not heeded: {NOT_YET[name]}" if name in NOT_YET else ""
