"""`shoal ssh`, which is also `dask ssh`: a scheduler, and workers on several hosts."""

from __future__ import annotations

from typing import Any, Final

import click

from shoal.cli import hosting
from shoal.cli.errors import NoHostsNamed, NotEnoughPorts
from shoal.cli.options import Checked, OneLineCommand, absent, harmless, read_memory
from shoal.cli.scheduler import DEFAULT_PORT, token_to_serve_with
from shoal.cli.worker import AUTO, read_ports
from shoal.errors import ShoalError
from shoal.version import VERSION

_MODULE: Final = "What starts workers there is shoal; --remote-python says with which Python."
_LOGS: Final = "What scheduler and workers have to say comes to stderr here, with their host."


def read_port(text: str) -> int:
    """A port.  Raises ValueError."""
    (port, *more) = read_ports(text)
    if more:
        raise ValueError(f"{text!r} is not a single port")
    return port


@click.command(cls=OneLineCommand)
@click.argument("hostnames", nargs=-1)
@click.option("--scheduler", help="The scheduler's host; the first of HOSTNAMES by default.")
@click.option(
    "--scheduler-port",
    type=click.IntRange(0, 65535),
    default=DEFAULT_PORT,
    show_default=True,
    help="Where it listens; 0: a free port.",
)
@click.option(
    "--nthreads",
    type=click.IntRange(0),
    default=0,
    help="Tasks at once in each worker; 0: its share of the CPUs of its host.",
)
@click.option(
    "--nworkers",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Workers on each host.",
)
@click.option(
    "--hostfile", type=click.File("r"), help="A file with more of HOSTNAMES, one on each line."
)
@click.option("--ssh-username", metavar="NAME", help="As ~/.ssh/config says, or our own.")
@click.option(
    "--ssh-port", type=Checked("port", read_port), help="22, or as ~/.ssh/config says, by default."
)
@click.option(
    "--ssh-private-key",
    type=click.Path(exists=True, dir_okay=False),
    help="A file; as ~/.ssh/config and ssh-agent say by default.",
)
@click.option(
    "--local-directory", metavar="FOLDER", help="On the hosts, for files of tasks and of workers."
)
@click.option(
    "--remote-python", metavar="PATH", help="Python on the hosts; where ours is here by default."
)
@click.option(
    "--memory-limit",
    type=Checked("size", read_memory),
    default=AUTO,
    show_default=True,
    metavar="SIZE",
    help="Of each worker: 4GB, a share such as 0.5, auto, 0 = none.",
)
@click.option(
    "--worker-port",
    type=Checked("ports", read_ports),
    metavar="PORT|FIRST:LAST",
    help="Where workers listen; of several, the first that is free; any if none.",
)
@absent("--log-directory", remedy=_LOGS)
@absent("--remote-dask-worker", remedy=_MODULE)
@harmless("--nohost", takes=False)  # workers listen where the scheduler can be reached from
@harmless("--nanny-port")  # nannies listen nowhere
@click.version_option(VERSION, prog_name="shoal ssh")
@click.pass_context
def ssh(context: click.Context, /, **options: Any) -> None:
    """Run a scheduler and workers on HOSTNAMES, by SSH, until SIGINT or SIGTERM.

    Each host needs a Python with shoal, and an SSH server that lets us in and whose key is known.
    The scheduler's address is the first line on stdout.  Clients must hold its token, which those
    of the same user find by themselves.  Everything ends with this command.
    """
    try:
        given = cluster_options(**options)
    except ValueError as error:
        raise click.UsageError(str(error), context) from error
    hosting.run(lambda: _serve(given))


def cluster_options(
    hostnames: tuple[str, ...],
    scheduler: str | None,
    scheduler_port: int,
    nthreads: int,
    nworkers: int,
    hostfile: Any,
    ssh_username: str | None,
    ssh_port: int | None,
    ssh_private_key: str | None,
    local_directory: str | None,
    remote_python: str | None,
    memory_limit: str | float,
    worker_port: list[int] | None,
) -> dict[str, Any]:
    """What an `SSHCluster` is made with.

    Raises:
        NoHostsNamed, NotEnoughPorts: ValueErrors.
    """
    lines = [] if hostfile is None else [line.strip() for line in hostfile]
    hosts = [*hostnames, *filter(None, lines)]
    if not hosts:
        raise NoHostsNamed
    ports = None if worker_port in (None, [0]) else worker_port
    if ports is not None and len(ports) < nworkers:
        raise NotEnoughPorts(len(ports), nworkers)
    login = {
        "username": ssh_username,
        "port": ssh_port,
        "client_keys": ssh_private_key and [ssh_private_key],
    }
    of_workers = {
        "n_workers": nworkers,
        "nthreads": nthreads or None,
        "local_directory": local_directory,
        "memory_limit": memory_limit,
        "worker_port": ports,
    }
    return {
        "hosts": [scheduler or hosts[0], *hosts],
        "connect_options": {name: value for name, value in login.items() if value is not None},
        "worker_options": {name: x for name, x in of_workers.items() if x is not None},
        "scheduler_options": {"port": scheduler_port},
        "remote_python": remote_python,
    }


async def _serve(options: dict[str, Any]) -> None:
    """Raises ShoalError: with what went wrong on which host; AlreadyTold: the scheduler is lost."""
    from shoal.deploy.ssh import SSHCluster

    options["scheduler_options"]["token"] = token_to_serve_with()
    cluster = SSHCluster(**options, asynchronous=True)
    try:
        await _start(cluster)
        click.echo(cluster.scheduler_address)
        await cluster.scheduler.finished()
        if not cluster.scheduler.process.has_ended_well:
            raise hosting.AlreadyTold  # by the log, as it happened
    finally:
        await cluster.close()


async def _start(cluster: Any) -> None:
    """Raises what keeps it from that, in its own words."""
    try:
        await cluster
    except RuntimeError as error:
        if isinstance(error.__cause__, ShoalError):
            raise error.__cause__ from None
        raise
