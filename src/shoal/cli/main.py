"""The command `shoal` with all of its parts."""

from __future__ import annotations

import click

from shoal.cli.demo import demo
from shoal.cli.dropin import dropin
from shoal.cli.options import OneLineGroup
from shoal.cli.scheduler import scheduler
from shoal.cli.settings import settings
from shoal.cli.spec import spec
from shoal.cli.ssh import ssh
from shoal.cli.worker import worker
from shoal.version import VERSION


@click.group(cls=OneLineGroup, invoke_without_command=True)
@click.version_option(VERSION, prog_name="shoal")
@click.pass_context
def main(context: click.Context) -> None:
    """A distributed task scheduler for Dask."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


main.add_command(demo)
main.add_command(dropin)
main.add_command(scheduler)
main.add_command(settings)
main.add_command(spec)
main.add_command(ssh)
main.add_command(worker)
