"""A visitor of the page, by hand: what he sends is exactly what is written here."""

import asyncio
from typing import NamedTuple


class Response(NamedTuple):
    """What came back; names of headers in lower case."""

    status: int
    headers: dict[str, str]
    text: str


async def visit(
    port: int, path: str, *, method: str = "GET", host: str = "localhost", **headers: str
) -> Response:
    """One request on a connection of its own."""
    fields = {"Host": host, "Connection": "close", **headers}
    lines = [f"{method} {path} HTTP/1.1", *map(": ".join, fields.items()), "", ""]
    return await say(port, "\r\n".join(lines).encode())


async def say(port: int, request: bytes) -> Response:
    """Send these bytes and take what comes until the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(request)
        answer = await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()
    head, _, body = answer.decode().partition("\r\n\r\n")
    first, *rest = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in rest)
    status = int(first.split(" ")[1]) if first else 0
    return Response(status, {name.lower(): value for name, value in headers.items()}, body)
