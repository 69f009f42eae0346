"""A socket that dials its own port meets itself, and says that nobody listens there."""

import asyncio
import socket

import pytest

from shoal.comms import tcp


@pytest.mark.parametrize(
    ("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")]
)
def test_whoever_reaches_itself_has_reached_nobody(family: int, host: str) -> None:
    async def main() -> None:
        with socket.socket(family, socket.SOCK_STREAM) as sock:
            sock.setblocking(False)
            sock.bind((host, 0))
            # What the system does by itself when it gives a port of its own range to who dials it.
            with pytest.raises(
                ConnectionRefusedError, match="nobody listens there but who dialled"
            ):
                await tcp.connect_to_another(sock, (host, sock.getsockname()[1]))

    asyncio.run(main())


def test_whoever_reaches_another_has_reached_him() -> None:
    async def main() -> None:
        with tcp.listen_at("127.0.0.1", 0) as listening, socket.socket() as sock:
            listening.listen()
            sock.setblocking(False)
            await tcp.connect_to_another(sock, listening.getsockname()[:2])
            assert sock.getpeername() == listening.getsockname()

    asyncio.run(main())
