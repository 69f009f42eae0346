"""The page and what it asks for, on aiohttp.  Imported when somebody comes to see it, in a thread.

Every URL is relative and one segment deep, so that the page works behind any proxy's prefix.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any, Final

import msgspec
from aiohttp import WSCloseCode, web

from shoal.version import VERSION
from shoal.web.addresses import Visitors
from shoal.web.answers import ANSWERS, SECURITY_HEADERS
from shoal.web.broadcast import Broadcast
from shoal.web.errors import OtherSite, UnknownHost
from shoal.web.feeds.status import status
from shoal.web.shown import Shown

PERIOD_SECONDS: Final = 0.4
"""Between two looks, as long as somebody watches."""

_CLOSE_SECONDS: Final = 0.03
"""How long a browser may take to say goodbye as the scheduler closes."""

_PING_SECONDS: Final = 20.0
_RECEIVED_BYTES_MAX: Final = 1_024  # viewers have nothing to say

_CONTENT_TYPES: Final = {
    "html": "text/html",
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
_FILES: Final = {file.name: file.read_bytes() for file in (files("shoal.web") / "static").iterdir()}
"""Read here and now, since this is not the loop's thread."""

_logger = logging.getLogger("shoal.web")

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class PageServer:
    """Serves a scheduler's page."""

    def __init__(self, scheduler: Shown, visitors: Visitors) -> None:
        self._scheduler = scheduler
        self._visitors = visitors
        self._broadcast = Broadcast(self._look, PERIOD_SECONDS)
        self._sockets: dict[web.WebSocketResponse, None] = {}
        app = web.Application(middlewares=[self._check_name])
        app.on_response_prepare.append(_add_headers)
        app.on_shutdown.append(self._say_goodbye)
        for path in ANSWERS:
            app.router.add_get(path, self._answer)
        app.router.add_get("/", _to_status)
        app.router.add_get("/status", self._page)
        app.router.add_get("/static/{name}", self._file)
        app.router.add_get("/live", self._live)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            logger=_logger,
            handle_signals=False,
            handler_cancellation=True,
            shutdown_timeout=_CLOSE_SECONDS,
        )

    async def start(self, sock: socket.socket) -> None:
        """Serve on a listening socket."""
        await self._runner.setup()
        await web.SockSite(self._runner, sock).start()

    async def close(self) -> None:
        """End; who still watches is told."""
        self._broadcast.close()
        await self._runner.cleanup()

    async def _say_goodbye(self, app: web.Application) -> None:
        ending = [
            socket.close(code=WSCloseCode.GOING_AWAY, message=b"the scheduler closes", drain=False)
            for socket in self._sockets
        ]
        await asyncio.gather(*ending, return_exceptions=True)

    # --- what is asked for -------------------------------------------------------------------

    @web.middleware
    async def _check_name(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            self._visitors.check_name(request.host)
        except UnknownHost as error:
            raise web.HTTPForbidden(text=str(error)) from None
        return await handler(request)

    async def _answer(self, request: web.Request) -> web.Response:
        content_type, body = await ANSWERS[request.path](self._scheduler)
        return web.Response(body=body, content_type=content_type, charset="utf-8")

    async def _page(self, request: web.Request) -> web.Response:
        return _response_of("status.html")

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in _FILES:
            raise web.HTTPNotFound
        return _response_of(name)

    async def _live(self, request: web.Request) -> web.WebSocketResponse:
        try:
            self._visitors.check_origin(request.headers.get("Origin"), request.host)
        except OtherSite as error:
            raise web.HTTPForbidden(text=str(error)) from None
        socket = web.WebSocketResponse(
            timeout=_CLOSE_SECONDS, heartbeat=_PING_SECONDS, max_msg_size=_RECEIVED_BYTES_MAX
        )
        await socket.prepare(request)
        self._sockets[socket] = None
        telling = asyncio.create_task(self._tell(socket), name="live figures")
        try:
            async for _ in socket:  # until the viewer goes
                pass
        finally:
            telling.cancel()
            del self._sockets[socket]
            await asyncio.wait((telling,))
        return socket

    async def _tell(self, socket: web.WebSocketResponse) -> None:
        """Send what is new, as fast as the viewer takes it."""
        number = 0
        try:
            while True:
                number, latest = await self._broadcast.after(number)
                await socket.send_str(latest.decode())
        except ConnectionError:
            pass  # the reader sees it, too

    def _look(self) -> bytes:
        scheduler = self._scheduler
        about: dict[str, Any] = {"address": scheduler.address, "version": VERSION}
        return msgspec.json.encode({"about": about, **status(scheduler.machine.state)})


async def _add_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(SECURITY_HEADERS)


async def _to_status(request: web.Request) -> web.Response:
    raise web.HTTPFound("status")


def _response_of(name: str) -> web.Response:
    content_type = _CONTENT_TYPES[name.rpartition(".")[2]]
    return web.Response(body=_FILES[name], content_type=content_type, charset="utf-8")
