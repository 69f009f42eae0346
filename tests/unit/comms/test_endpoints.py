"""Endpoints: who is let in, what is found where, and what a failure to connect or listen says."""

import asyncio
import logging
import socket
import stat
import struct
from typing import Any

import pytest

from shoal.comms import (
    AdmissionLimits,
    AuthenticationError,
    ConnectError,
    Connection,
    ListenError,
    connect,
    listen,
)
from shoal.protocol.handshake import NONCE_NBYTES, ClientHandshake, Keyring
from tests.unit.comms.ends import (
    DECODER,
    KEYS,
    KINDS,
    End,
    Service,
    address_for,
    service,
)
from tests.until import until


@pytest.mark.parametrize("kind", KINDS)
def test_a_wrong_token_is_refused_with_a_remedy(kind: str) -> None:
    async def main() -> None:
        async with service(address_for(kind), shortcut=kind != "tcp") as served:
            wrong = Keyring.from_token(b"wrong")
            with pytest.raises(AuthenticationError, match="token"):
                await connect(served.listener.address, wrong, "client", DECODER, timeout_seconds=5)
            with pytest.raises(AuthenticationError, match="holds no key"):
                await connect(
                    served.listener.address,
                    KEYS.only("worker"),
                    "client",
                    DECODER,
                    timeout_seconds=5,
                )
            assert served.ends == []

    asyncio.run(main())


@pytest.mark.parametrize(
    "said", [b"", ClientHandshake(KEYS, "client", bytes(NONCE_NBYTES)).start()]
)
@pytest.mark.parametrize("is_broken", [False, True])
def test_a_peer_that_goes_away_before_it_is_let_in_is_no_reason_for_a_warning(
    said: bytes, is_broken: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """As a worker does that is ended while it connects to another, or whoever tries a port."""

    async def main() -> None:
        async with service("tcp://127.0.0.1:0") as served:
            host, port = served.listener.address.removeprefix("tcp://").split(":")
            with socket.create_connection((host, int(port))) as peer:
                peer.sendall(said)
                if is_broken:  # so that closing resets it
                    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            await until(lambda: caplog.records)

    caplog.set_level(logging.INFO, "shoal.comms")
    asyncio.run(main())
    assert [record.levelname for record in caplog.records] == ["INFO"]
    assert "went away before it was let in" in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_connecting_where_nobody_listens_fails_at_once_and_says_what_to_check(kind: str) -> None:
    async def main() -> None:
        async with service(address_for(kind)) as served:
            address = served.listener.address
        with pytest.raises(ConnectError, match="Check that the process is running") as caught:
            await connect(address, KEYS, "client", DECODER, timeout_seconds=30)
        assert address in str(caught.value)

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["tcp", "shortcut", "unix"])
def test_a_service_that_comes_later_is_found_by_who_keeps_trying(kind: str) -> None:
    async def main() -> None:
        async with service(address_for(kind)) as served:
            address = served.listener.address
        connecting = asyncio.ensure_future(
            connect(address, KEYS, "worker", DECODER, timeout_seconds=10, keep_trying=True)
        )
        await asyncio.sleep(0)
        async with service(address) as served:
            connection = await connecting
            assert (await served.end()).connection.role == "worker"
            connection.close()
            await connection.wait_closed()

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_an_address_that_is_taken_says_so(kind: str) -> None:
    async def main() -> None:
        async with service(address_for(kind)) as served:
            with pytest.raises(ListenError, match="in use"):
                await listen(served.listener.address, KEYS, lambda _: DECODER, lambda _: None)

    asyncio.run(main())


def test_a_service_that_never_speaks_is_given_up_at_the_deadline() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:  # nobody ever accepts
            port = silent.getsockname()[1]
            with pytest.raises(ConnectError, match="Timed out trying to connect"):
                await connect(f"127.0.0.1:{port}", KEYS, "client", DECODER, timeout_seconds=0.1)

    asyncio.run(main())


def test_a_listening_socket_made_elsewhere_is_adopted() -> None:
    async def main() -> None:
        sock = socket.create_server(("127.0.0.1", 0))
        port = sock.getsockname()[1]
        served = Service()
        listener = await listen("", KEYS, lambda _: DECODER, served.on_connection, sock=sock)
        assert listener.address == f"tcp://127.0.0.1:{port}"
        connection = await connect(listener.address, KEYS, "client", DECODER, timeout_seconds=5)
        accepted = await served.end()
        connection.abort()
        accepted.connection.abort()
        listener.close()
        await listener.wait_closed()

    asyncio.run(main())


def test_two_services_on_one_port_of_different_addresses_are_told_apart() -> None:
    """Their Unix shortcuts must not be confused, although both know the token."""

    async def main() -> None:
        async with service("tcp://127.0.0.1:0") as first:
            port = first.listener.address.rpartition(":")[2]
            async with service(f"tcp://127.0.0.2:{port}") as second:
                for served in (first, second):
                    connection = await connect(
                        served.listener.address, KEYS, "client", DECODER, timeout_seconds=5
                    )
                    assert connection.scheme == "unix"
                    await served.end()
                    connection.abort()
                assert (len(first.ends), len(second.ends)) == (1, 1)

    asyncio.run(main())


def test_a_service_on_all_interfaces_is_known_by_an_address_that_can_be_dialled() -> None:
    async def main() -> None:
        async with service("tcp://:0") as served:
            assert "0.0.0.0" not in served.listener.address
            connection = await connect(
                served.listener.address, KEYS, "client", DECODER, timeout_seconds=5
            )
            await served.end()
            connection.abort()

    asyncio.run(main())


def test_a_shortcut_taken_by_a_stranger_costs_nothing_but_the_shortcut() -> None:
    """It accepts the name but holds no token: the way is TCP, then."""

    async def main() -> None:
        async with service("tcp://127.0.0.1:0", shortcut=False) as served:
            port = served.listener.address.rpartition(":")[2]
            stranger_keys = Keyring.from_token(b"stranger")
            async with service(f"unix://@shoal/127.0.0.1/{port}", keys=stranger_keys) as stranger:
                connection = await connect(
                    served.listener.address, KEYS, "client", DECODER, timeout_seconds=5
                )
                assert connection.scheme == "tcp"
                assert stranger.ends == []
                connection.abort()

    asyncio.run(main())


def test_a_unix_path_is_private_removed_at_close_and_taken_over_from_the_dead(
    tmp_path: Any,
) -> None:
    path = tmp_path / "service"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()

    async def main() -> None:
        async with service(f"unix://{path}") as served:
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert served.listener.address == f"unix://{path}"
        assert not path.exists()

    asyncio.run(main())


def test_a_crowd_from_one_host_is_let_in_although_few_may_wait_at_a_time() -> None:
    """Who is turned away at the door tries again until the deadline."""

    async def main() -> None:
        admission = AdmissionLimits(unauthenticated_per_host_max=8)
        async with service("tcp://127.0.0.1:0", shortcut=False, admission=admission) as served:
            address = served.listener.address
            connections = await asyncio.gather(
                *(connect(address, KEYS, "worker", DECODER, timeout_seconds=20) for _ in range(60))
            )
            await served.end(59)
            for connection in connections:
                connection.abort()

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_that_fails_to_take_a_peer_lets_it_go_and_the_loop_is_told(kind: str) -> None:
    async def main() -> None:
        problems: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: problems.append(told))

        def on_connection(connection: Connection) -> None:
            raise ValueError("a bug in the service")

        listener = await listen(address_for(kind), KEYS, lambda _: DECODER, on_connection)
        connection = await connect(listener.address, KEYS, "client", DECODER, timeout_seconds=5)
        dialled = End(connection)
        await dialled.told()
        assert [str(problem["exception"]) for problem in problems] == ["a bug in the service"]
        listener.close()
        await listener.wait_closed()

    asyncio.run(main())
