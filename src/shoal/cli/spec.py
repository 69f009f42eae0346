"""`shoal spec`, which is also `dask spec`: services of whatever classes a text names."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import click

from shoal.cli import hosting
from shoal.cli.errors import NotASpec
from shoal.cli.options import OneLineCommand
from shoal.version import VERSION


@click.command(cls=OneLineCommand, context_settings={"ignore_unknown_options": True})
@click.argument("args", nargs=-1)
@click.option("--spec", "text", default="", metavar="JSON", help="What to start.")
@click.option(
    "--spec-file",
    "path",
    type=click.Path(dir_okay=False, exists=False),
    metavar="FILE",
    help="A file, of JSON or YAML, that says what to start.",
)
@click.version_option(VERSION, prog_name="shoal spec")
@click.pass_context
def spec(context: click.Context, /, args: tuple[str, ...], text: str, path: str | None) -> None:
    """Run services until they end, or until SIGINT or SIGTERM.

    A spec is {"cls": "dask.distributed.Worker", "opts": {"nthreads": 1}}, or several of these by
    name.  ARGS come first of all, such as the scheduler's address for workers.  The address of
    each service is a line on stdout.
    """
    if bool(text) == bool(path):
        raise click.UsageError("Give exactly one of --spec and --spec-file", context)
    try:
        entries = read_spec(text, path)
    except NotASpec as error:
        raise click.UsageError(str(error), context) from error
    hosting.run(lambda: _serve(entries, args))


def read_spec(text: str, path: str | None) -> dict[Any, Mapping[str, Any]]:
    """Name → spec of each service.  A single one has the name None, which is none.

    Raises:
        NotASpec: it can't be read, or says nothing of a class (a ValueError).
    """
    try:
        found = json.loads(text) if path is None else _read_yaml(path)
    except (OSError, ValueError) as error:
        raise NotASpec(str(error)) from error
    if isinstance(found, Mapping) and "cls" in found:
        found = {None: found}
    if not isinstance(found, Mapping) or not found or not all(map(_is_entry, found.values())):
        raise NotASpec('a spec is {"cls": ..., "opts": {...}}, or several of these by name')
    return dict(found)


def _is_entry(entry: Any) -> bool:
    """Whether it names a class, and options if any."""
    return (
        isinstance(entry, Mapping)
        and isinstance(entry.get("cls"), str)
        and all(isinstance(entry.get(name) or {}, Mapping) for name in ("options", "opts"))
    )


def _read_yaml(path: str) -> Any:
    """Raises OSError, or NotASpec."""
    yaml: Any = import_module("yaml")  # dask's own configuration needs it
    with open(path, encoding="utf-8") as opened:
        try:
            return yaml.safe_load(opened)
        except yaml.YAMLError as error:
            raise NotASpec(str(error)) from error


async def _serve(entries: Mapping[Any, Mapping[str, Any]], args: tuple[str, ...]) -> None:
    import dask.config

    from shoal.cli.scheduler import token_to_serve_with
    from shoal.cli.worker import FOREVER_SECONDS, have_token
    from shoal.client.dask_settings import settings_with_client
    from shoal.deploy.child import SWITCH_INTERVAL_SECONDS
    from shoal.deploy.spec import class_of, made, parameters_of
    from shoal.scheduler.shell.service import Scheduler

    kinds = {name: class_of(entry["cls"]) for name, entry in entries.items()}
    sys.setswitchinterval(SWITCH_INTERVAL_SECONDS)
    dask.config.set(settings_with_client())  # tasks of workers in this process have a client
    services = []
    for name, entry in entries.items():
        kind = kinds[name]
        is_scheduler = isinstance(kind, type) and issubclass(kind, Scheduler)
        given = {**(entry.get("options") or {}), **(entry.get("opts") or {})}
        if "death_timeout" in parameters_of(kind):  # a scheduler may come later than its workers
            given.setdefault("death_timeout", FOREVER_SECONDS)
            where = args[0] if args else given.get("scheduler_ip")
            if where:
                have_token(str(where))
        options = {**entry, "cls": kind, "options": given}
        token = token_to_serve_with() if is_scheduler else None
        services.append(made(options, *args, name=name, token=token))
    await hosting.host(services)
