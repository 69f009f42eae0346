"""A scheduler's page: a listening socket, and behind it nothing, until somebody comes.

The library that serves it takes a fifth of a second to load, and most clusters are never looked
at.  So the first connection has it loaded, in a thread, while it waits to be accepted.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from typing import Any

from shoal import config
from shoal.web.addresses import Visitors, bind_page, parse_page_address
from shoal.web.shown import Shown

_logger = logging.getLogger("shoal.web")


def open_page(scheduler: Shown, address: object, default_host: str) -> Page | None:
    """Bind the page's socket; on the loop that will serve it.

    Args:
        address: as a user gives it; see `parse_page_address`.  None: there shall be no page.
        default_host: where to listen if `address` does not say.

    Raises:
        PageAddressError: `address` is none.
        ListenError: its host is not ours.

    Cost: 0.1 ms.
    """
    place = parse_page_address(address, default_host)
    if place is None:
        return None
    host, port = place
    visitors = Visitors(host, config.read(config.Dashboard).hosts)
    return Page(scheduler, bind_page(host, port), visitors)


class Page:
    """The page of one scheduler, from its socket to its end."""

    def __init__(self, scheduler: Shown, sock: socket.socket, visitors: Visitors) -> None:
        self.host: str = sock.getsockname()[0]
        self.port: int = sock.getsockname()[1]
        self._scheduler = scheduler
        self._sock = sock
        self._visitors = visitors
        self._loop = asyncio.get_running_loop()
        self._opening: asyncio.Task[None] | None = None
        self._server: Any = None  # of either kind
        self._loop.add_reader(sock.fileno(), self._on_visit)

    async def close(self) -> None:
        """End, whether or not anybody ever came."""
        if self._opening is None:
            self._loop.remove_reader(self._sock.fileno())
        else:
            self._opening.cancel()
            await asyncio.wait((self._opening,))
        if self._server is not None:
            await self._server.close()
        self._sock.close()

    def _on_visit(self) -> None:
        self._loop.remove_reader(self._sock.fileno())
        self._opening = self._loop.create_task(self._open(), name="the web page opens")

    async def _open(self) -> None:
        """Have the visitor served, and all that follow."""
        try:
            self._server = await self._make_server()
            await self._server.start(self._sock)
        except Exception:
            _logger.exception("The web page can't be served; the scheduler works all the same")
            self._sock.close()

    async def _make_server(self) -> Any:
        executor = ThreadPoolExecutor(1, "shoal-web")
        try:
            module = await self._loop.run_in_executor(executor, import_module, "shoal.web.server")
        except ImportError as error:
            _logger.debug("The web page is served without aiohttp: %s", error)
            from shoal.web.plain import PlainServer  # most schedulers need neither server

            return PlainServer(self._scheduler, self._visitors)
        finally:
            executor.shutdown(wait=False)
        return module.PageServer(self._scheduler, self._visitors)
