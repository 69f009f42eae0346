"""Whether an address can be reached, and what a service's page counts."""

from __future__ import annotations

import asyncio
import urllib.request
from typing import Any, Final

from shoal.comms.addresses import outward_ip

_FETCH_SECONDS: Final = 10.0


async def assert_can_connect(addr: str, timeout: float = 0.5, **kwargs: Any) -> None:
    """Something listens at an address and takes a connection, within `timeout` seconds."""
    host, port = _host_and_port(addr)
    async with asyncio.timeout(timeout):
        _, writer = await asyncio.open_connection(host, port)
    writer.close()
    await writer.wait_closed()


async def assert_cannot_connect(
    addr: str,
    timeout: float = 0.5,
    exception_class: type[BaseException] = EnvironmentError,
    **kwargs: Any,
) -> None:
    """Nothing at an address takes a connection, or it takes longer than `timeout` seconds.

    Raises:
        AssertionError: something does.
    """
    try:
        await assert_can_connect(addr, timeout, **kwargs)
    except exception_class:
        return
    raise AssertionError(f"{addr} took a connection")


async def assert_can_connect_from_everywhere_4_6(
    port: int, protocol: str = "tcp", **kwargs: Any
) -> None:
    """A port is open on all addresses of this machine, of both kinds."""
    await assert_can_connect_from_everywhere_4(port, protocol, **kwargs)
    await assert_can_connect(f"{protocol}://[::1]:{port}", **kwargs)


async def assert_can_connect_from_everywhere_4(
    port: int, protocol: str = "tcp", **kwargs: Any
) -> None:
    """A port is open on all IPv4 addresses of this machine."""
    for host in ("127.0.0.1", outward_ip()):
        await assert_can_connect(f"{protocol}://{host}:{port}", **kwargs)


async def assert_can_connect_locally_4(port: int, **kwargs: Any) -> None:
    """A port is open on IPv4's loopback, and for nobody else."""
    await assert_can_connect(f"tcp://127.0.0.1:{port}", **kwargs)
    if outward_ip() != "127.0.0.1":
        await assert_cannot_connect(f"tcp://{outward_ip()}:{port}", **kwargs)


async def assert_can_connect_from_everywhere_6(port: int, **kwargs: Any) -> None:
    """A port is open on IPv6's addresses of this machine."""
    await assert_can_connect(f"tcp://[::1]:{port}", **kwargs)


async def assert_can_connect_locally_6(port: int, **kwargs: Any) -> None:
    """A port is open on IPv6's loopback."""
    await assert_can_connect(f"tcp://[::1]:{port}", **kwargs)


def _host_and_port(addr: str) -> tuple[str, int]:
    location = addr.partition("://")[2] or addr
    host, _, port = location.rpartition(":")
    return host.strip("[]") or "127.0.0.1", int(port)


async def fetch_metrics_body(port: int) -> str:
    """What the page `/metrics` of a service on this machine says, as text for Prometheus."""
    address = f"http://localhost:{port}/metrics"
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(None, _read, address)


def _read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=_FETCH_SECONDS) as answer:
        text: str = answer.read().decode()
    return text


async def fetch_metrics(port: int, prefix: str | None = None) -> dict[str, Any]:
    """Name → family, of what `/metrics` says; those whose name begins with `prefix`."""
    from prometheus_client.parser import text_string_to_metric_families

    families = text_string_to_metric_families(await fetch_metrics_body(port))
    return {
        family.name: family
        for family in families
        if prefix is None or family.name.startswith(prefix)
    }


async def fetch_metrics_sample_names(port: int, prefix: str | None = None) -> set[str]:
    """The names of all samples in those families."""
    families = await fetch_metrics(port, prefix)
    return {sample.name for family in families.values() for sample in family.samples}
