"""The few answers that need no library, for where aiohttp is not installed.

One request on each connection, and only its first line and its host are read.
"""

from __future__ import annotations

import asyncio
import socket
from http import HTTPStatus
from typing import Final

from shoal.web.addresses import Visitors
from shoal.web.answers import ANSWERS, SECURITY_HEADERS, Answer
from shoal.web.errors import NoWebLibrary, UnknownHost
from shoal.web.shown import Shown

REQUEST_SECONDS_MAX: Final = 5.0
"""Whoever has not said by then what he wants is sent away."""

REQUEST_BYTES_MAX: Final = 16_384


class PlainServer:
    """Serves `ANSWERS`, and says what is missing for the rest."""

    def __init__(self, scheduler: Shown, visitors: Visitors) -> None:
        self._scheduler = scheduler
        self._visitors = visitors
        self._server: asyncio.Server | None = None
        self._visits: dict[asyncio.Task[None], None] = {}

    async def start(self, sock: socket.socket) -> None:
        """Serve on a listening socket."""
        self._server = await asyncio.start_server(
            self._on_connection, sock=sock, limit=REQUEST_BYTES_MAX
        )

    async def close(self) -> None:
        """End; whoever is here is sent away."""
        if self._server is not None:
            self._server.close()
        visits = list(self._visits)
        for visit in visits:
            visit.cancel()
        await asyncio.gather(*visits, return_exceptions=True)

    async def _on_connection(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        visit = asyncio.ensure_future(self._serve(reader, writer))
        self._visits[visit] = None
        visit.add_done_callback(self._visits.pop)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS_MAX):
                head = await reader.readuntil(b"\r\n\r\n")
                status, answer = await self._answer(head.decode("latin-1").split("\r\n"))
                with_body = not head.startswith(b"HEAD ")
                writer.write(to_bytes(status, answer, with_body=with_body))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # it went, said nothing, or too much: there is nobody to tell
        finally:
            writer.close()

    async def _answer(self, lines: list[str]) -> tuple[HTTPStatus, Answer]:
        method, _, rest = lines[0].partition(" ")
        hosts = [line[5:] for line in lines[1:] if line[:5].lower() == "host:"]
        if method not in ("GET", "HEAD"):
            return HTTPStatus.METHOD_NOT_ALLOWED, _text("Only GET is answered here.\n")
        try:
            self._visitors.check_name(hosts[0] if hosts else "")
        except UnknownHost as error:
            return HTTPStatus.FORBIDDEN, _text(str(error))
        find = ANSWERS.get(rest.partition(" ")[0].partition("?")[0])
        if find is None:
            return HTTPStatus.SERVICE_UNAVAILABLE, _text(str(NoWebLibrary()))
        return HTTPStatus.OK, await find(self._scheduler)


def to_bytes(status: HTTPStatus, answer: Answer, *, with_body: bool) -> bytes:
    """A whole response."""
    fields = {
        "Content-Type": f"{answer.content_type}; charset=utf-8",
        "Content-Length": str(len(answer.body)),
        "Connection": "close",
        **SECURITY_HEADERS,
    }
    head = [f"HTTP/1.1 {status.value} {status.phrase}", *map(": ".join, fields.items()), "", ""]
    return "\r\n".join(head).encode("latin-1") + (answer.body if with_body else b"")


def _text(words: str) -> Answer:
    return Answer("text/plain", words.encode())
