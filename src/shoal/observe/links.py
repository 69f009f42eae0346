"""How the web page's address is written: by a template that the configuration may replace."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import cache
from typing import Final

from shoal import config
from shoal.comms.addresses import TCP, parse_address

PAGE: Final = "dashboard"
"""Under this name the page's port stands among a scheduler's services."""

PAGE_ON_LOOPBACK: Final = "dashboard-on-loopback"
"""The same of a page that only the scheduler's own host sees, though others reach the scheduler."""

HERE: Final = "127.0.0.1"
"""The host of a page whose scheduler can only be reached within this machine."""

_logger = logging.getLogger("shoal.observe")


def dashboard_link(
    scheduler_address: str, services: Mapping[str, int], *, is_beside: bool = False
) -> str:
    """Where a browser finds the page of a scheduler; empty if it has none that it could reach.

    Args:
        is_beside: whether the browser is on the scheduler's host, as far as is known.

    The template (`dashboard.link`) may name {scheme}, {host}, {port} and any environment variable.
    One that can't be filled is left as it is, and told of once.
    """
    port = services.get(PAGE)
    host = host_of_page(scheduler_address) if scheduler_address else HERE
    if not port and is_beside:
        port, host = services.get(PAGE_ON_LOOPBACK), HERE
    if not port:
        return ""
    bracketed = f"[{host}]" if ":" in host else host
    template = config.read(config.Dashboard).link
    words = {**os.environ, "scheme": "http", "host": bracketed, "port": str(port)}
    try:
        return template.format(**words)
    except (KeyError, IndexError, ValueError, AttributeError) as error:
        _say_unfilled(template, str(error))
        return template


def host_of_page(scheduler_address: str) -> str:
    """The host of a scheduler's page, for those who reach the scheduler by this address."""
    address = parse_address(scheduler_address, default_port=0)
    return address.host if address.scheme == TCP and not address.is_wildcard else HERE


@cache
def _say_unfilled(template: str, why: str) -> None:
    _logger.warning(
        "The link to the web page can't be written: %s is not known to %r. Set that environment "
        "variable, or change the setting distributed.dashboard.link",
        why,
        template,
    )
