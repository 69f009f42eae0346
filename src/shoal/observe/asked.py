"""What services are asked for by upstream's names, and what that comes to here."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from importlib import import_module
from typing import Any

import dask.config

from shoal.comms.addresses import parse_address
from shoal.errors import UnknownClass, UnknownInterface, UnsupportedOption
from shoal.observe.errors import NoSchedulerGiven


def class_named(name: str) -> Any:
    """The class of that name, such as `"dask.distributed.Worker"`; its module is imported.

    Raises:
        UnknownClass: there is none, or its module can't be imported (an ImportError).
    """
    module, _, last = name.rpartition(".")
    if not module or not last:
        raise UnknownClass(name, "it is without a module")
    try:
        return getattr(import_module(module), last)
    except (ImportError, AttributeError) as error:
        raise UnknownClass(name, str(error)) from error


def host_of_interface(name: str) -> str:
    """The IPv4 address of a network interface of this host.

    Raises:
        UnknownInterface: it has none of that name, or that one no such address (a ValueError).
    """
    import psutil

    addresses: Mapping[str, Any] = psutil.net_if_addrs()
    for entry in addresses.get(name, ()):
        if entry.family == socket.AF_INET:
            return str(entry.address)
    raise UnknownInterface(name, sorted(addresses))


def split_scheme(host: str) -> tuple[str, str]:
    """`tcp://here` → `("tcp", "here")`; no scheme, where none is said."""
    scheme, separator, rest = host.partition("://")
    return (scheme, rest) if separator else ("", host)


def refuse_encryption(security: Any) -> None:
    """Let pass what says nothing, or asks for no certificates.

    Raises:
        UnsupportedOption: it asks for encrypted connections.
    """
    asks = isinstance(security, Mapping) and security
    if asks or security is True or getattr(security, "require_encryption", False):
        raise UnsupportedOption(
            "security with certificates",
            "Everybody proves to hold the cluster's token; leave encryption to the network.",
        )


def find_scheduler(
    what: str, host: str | None, port: int | None, file: str | None, protocol: str | None
) -> tuple[str, bytes | None]:
    """Where the scheduler of a worker or nanny is, in its canonical form, and its token, if a file
    says it.

    Args:
        what: the class that asks, for the error: "Worker", "Nanny".
        host: its address, or its host alone, with `port`; None: as the file, else the settings say.
        protocol: of an address that says none.

    Raises:
        NoSchedulerGiven: nobody says it, or the file is not there (a ValueError).
        AddressError: it can't be one.
        TokenFileError: the file holds a token, and isn't for our eyes only.
    """
    token = None
    if file is not None:
        from shoal.comms.scheduler_file import read_scheduler_file  # few have one

        found = read_scheduler_file(file)
        if found is None:
            raise NoSchedulerGiven(what, file)
        host, token = found.address, found.token
    host = host or dask.config.get("scheduler-address", None)
    if not host:
        raise NoSchedulerGiven(what)
    text = str(host) if port is None else f"{host}:{port}"
    if protocol and "://" not in text:
        text = f"{protocol.removesuffix('://')}://{text}"
    return str(parse_address(text)), token
