"""What commands share: errors in one line, kinds of values, and options that are not there yet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import inf, nan
from typing import Any, Final, TypeVar

import click

from shoal.cli.errors import BadUsage, UnusableFolder
from shoal.errors import UnsupportedOption

F = TypeVar("F", bound=Callable[..., Any])


_PRELOADING: Final = ("--preload", "--preload-nanny")


@contextmanager
def _one_line(command: str) -> Iterator[None]:
    """Bad usage becomes one line, without the usage and the hint that click puts before it."""
    try:
        yield
    except click.UsageError as error:
        name = command if error.ctx is None else error.ctx.command_path
        raise BadUsage(name, error.format_message()) from error


class OneLineCommand(click.Command):
    """A command that tells of bad usage in one line, by itself or within another program."""

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """Parse the arguments, of which the first is the name under which it was called."""
        with _one_line(str(arguments[0])):
            return super().make_context(*arguments, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        with _one_line(ctx.command_path):
            return super().invoke(ctx)


class PreloadCommand(OneLineCommand):
    """One that hands on what it does not know to its preloads, if it has any."""

    def make_context(self, *arguments: Any, **extra: Any) -> click.Context:
        """Parse the arguments."""
        if any(word.partition("=")[0] in _PRELOADING for word in arguments[1]):
            extra["ignore_unknown_options"] = True
        return super().make_context(*arguments, **extra)


class OneLineGroup(OneLineCommand, click.Group):
    """A group of such commands."""


class Checked(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.5 only
    """A value that a function reads; what it raises is bad usage."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The value that `value`, a text, stands for."""
        if not isinstance(value, str):
            return value
        try:
            return self._read(value)
        except (TypeError, ValueError) as error:
            return self.fail(str(error), param, ctx)


def read_address(text: str) -> str:
    """An address that can be dialled.  Raises AddressError, a ValueError."""
    from shoal.comms.addresses import parse_address

    return str(parse_address(text))


def read_tcp_address(text: str) -> str:
    """An address with a host and a port.  Raises AddressError, a ValueError."""
    from shoal.comms.addresses import TCP, parse_address
    from shoal.comms.errors import AddressError

    address = parse_address(text)
    if address.scheme != TCP:
        raise AddressError(text, "workers that are started by hand listen on tcp://")
    return str(address)


def read_seconds(text: str) -> float:
    """A duration in seconds, from 0 on.  Raises ValueError."""
    from shoal.units import to_seconds

    seconds = to_seconds(text)
    if seconds < 0:
        raise ValueError(f"{text!r} is less than no time")
    return seconds


def read_memory(text: str) -> str | float:
    """A memory limit as `Worker` takes it, whose text makes sense.  Raises ValueError."""
    from shoal.observe.limits import memory_limit_bytes

    memory_limit_bytes(text, 1, warns=False)
    return text


def read_folder(text: str) -> str:
    """A folder that is there, or is made now, and that we can write into.

    Raises:
        UnusableFolder: a ValueError.
    """
    import tempfile

    try:
        os.makedirs(text, exist_ok=True)
        with tempfile.TemporaryFile(dir=text):  # only this tells, whatever the file system
            return os.path.abspath(text)
    except OSError as error:
        raise UnusableFolder(text, error.strerror or str(error)) from error


def read_name(text: str) -> str | int:
    """A worker's name; digits alone are a number."""
    return int(text) if text.isascii() and text.isdigit() else text


def read_resources(text: str) -> dict[str, float]:
    """`"GPU=2 MEM=10e9"`, with spaces or commas between.  Raises ValueError."""
    resources = {}
    for entry in text.replace(",", " ").split():
        name, _, amount = entry.partition("=")
        try:
            number = float(amount)
        except ValueError:
            number = nan
        if not name or not 0 <= number < inf:
            raise ValueError(f"{entry!r} is not NAME=NUMBER, such as GPU=2")
        resources[name] = number
    return resources


def read_interface(name: str) -> str:
    """The IPv4 address of a network interface.  Raises UnknownInterface, a ValueError."""
    from shoal.observe.asked import host_of_interface

    return host_of_interface(name)


def _left_over(context: click.Context, option: click.Parameter, value: Any) -> Any:
    """Arguments that no option takes.  Raises click.UsageError: there is no preload either."""
    if not value:
        return value
    from shoal.observe.preloading import validate_preload_argv

    return validate_preload_argv(context, option, value)


INTERFACE: Final = click.option(
    "--interface",
    type=Checked("name", read_interface),
    metavar="NAME",
    help="Network interface to listen on, instead of --host.",
)
PRELOAD: Final = click.option(
    "--preload",
    multiple=True,
    is_eager=True,
    metavar="MODULE|FILE|URL|TEXT",
    help="Python that runs there before anything else; may be given several times.",
)
PRELOAD_ARGV: Final = click.argument(
    "preload_argv", nargs=-1, type=click.UNPROCESSED, callback=_left_over
)
"""What is left over is for the preloads."""

PID_FILE: Final = click.option(
    "--pid-file", type=click.Path(dir_okay=False), help="Write the process id there."
)
PROTOCOL: Final = click.option(
    "--protocol", type=click.Choice(["tcp", "tcp://"]), default="tcp", hidden=True
)


def absent(*names: str, remedy: str, takes: bool = True) -> Callable[[F], F]:
    """Options of `distributed` that would change what happens, and are refused by name.

    Args:
        takes: they take a value; else they are flags.
    """

    def refuse(context: click.Context, option: click.Parameter, value: Any) -> None:
        if value is not None and value != ():
            raise click.UsageError(str(UnsupportedOption(option.opts[0], remedy)), context)

    def add(function: F) -> F:
        for name in names:
            option = click.option(
                name,
                hidden=True,
                expose_value=False,
                callback=refuse,
                default=None,
                multiple=takes,
                is_flag=not takes,
            )
            function = option(function)
        return function

    return add


def harmless(*names: str, takes: bool = True) -> Callable[[F], F]:
    """An option of `distributed` that has no effect here, and needs none."""
    return click.option(*names, hidden=True, expose_value=False, is_flag=not takes, default=None)


NO_TLS: Final = absent(
    "--tls-ca-file",
    "--tls-cert",
    "--tls-key",
    remedy="Peers prove that they hold a token, and encryption is left to the network.",
)
