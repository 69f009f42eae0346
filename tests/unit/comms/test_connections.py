"""One suite for every kind of connection: what one end says, the other hears, whatever happens."""

import asyncio
import socket
import stat
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from shoal.comms import (
    AdmissionLimits,
    AuthenticationError,
    CommClosedError,
    ConnectError,
    Connection,
    ListenError,
    connect,
    listen,
)
from shoal.protocol.handshake import Keyring
from tests.unit.comms.ends import (
    DECODER,
    KEYS,
    KINDS,
    End,
    Note,
    Parcel,
    Service,
    address_for,
    pair,
    service,
)

LARGE_NBYTES = 24 << 20

Story = Callable[[End, End], Awaitable[None]]


def play(kind: str, story: Story, **arguments: bool) -> None:
    """Run `story` on a new pair: the end that dialled, and the one that accepted."""

    async def main() -> None:
        async with pair(kind, **arguments) as (dialled, accepted):
            await story(dialled, accepted)

    asyncio.run(main())


@pytest.mark.parametrize("kind", KINDS)
def test_each_end_knows_whom_it_talks_to(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        assert dialled.connection.role == "server"
        assert accepted.connection.role == "client"
        assert dialled.connection.peer_address == accepted.connection.local_address
        assert accepted.connection.peer_address != accepted.connection.local_address
        assert dialled.connection.scheme == {"shortcut": "unix"}.get(kind, kind)

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_arrive_in_order_in_both_directions(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        for number in range(0, 500, 2):
            dialled.connection.send([Note(number), Note(number + 1, "x" * number)])
            accepted.connection.send([Note(number)])
        heard = await accepted.heard(500)
        assert [note.number for note in heard] == list(range(500))
        assert heard[401].text == "x" * 400
        assert [note.number for note in await dialled.heard(250)] == list(range(0, 500, 2))

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_frames_that_arrive_together_are_delivered_together(kind: str) -> None:
    """None of them waits for the other loop turn: one call, and never from inside `send`."""

    async def story(dialled: End, accepted: End) -> None:
        for number in range(100):
            dialled.connection.send([Note(number)])
        assert accepted.calls == []
        await accepted.heard(100)
        # The system may hand TCP segments over while the first are being read.
        assert len(accepted.calls) <= (20 if kind == "tcp" else 1)

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_buffers_arrive_with_their_message_between_the_others(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        large = bytes(range(256)) * (LARGE_NBYTES // 256)
        dialled.connection.send([Note(1)])
        dialled.connection.send_with_buffers(Parcel(2), [b"small", large, b"", memoryview(b"end")])
        dialled.connection.send([Note(3)])
        assert await accepted.heard(3) == [Note(1), Parcel(2), Note(3)]
        assert [len(buffers) for _, buffers in accepted.calls] == [0, 4, 0]
        small, heard, empty, end = accepted.buffers
        assert (bytes(small), bytes(empty), bytes(end)) == (b"small", b"", b"end")
        assert heard == large
        assert memoryview(heard).contiguous

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_close_sends_what_is_queued_and_then_both_ends_are_told_once(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send_with_buffers(Parcel(1), [bytes(LARGE_NBYTES)])
        dialled.connection.send([Note(2)])
        # Unread bytes at the side that closes must not cost the other side the tail.
        accepted.connection.send([Note(number) for number in range(1000)])
        dialled.connection.close()
        dialled.connection.close()
        assert dialled.connection.closed
        assert await accepted.told() is None
        assert await dialled.told() is None
        assert accepted.messages == [Parcel(1), Note(2)]
        assert len(accepted.buffers[0]) == LARGE_NBYTES
        await dialled.connection.wait_closed()
        await accepted.connection.wait_closed()
        assert (len(dialled.reasons), len(accepted.reasons)) == (1, 1)

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_can_be_sent_after_the_end(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.close()
        with pytest.raises(CommClosedError, match="is closed"):
            dialled.connection.send([Note(1)])
        await accepted.told()
        with pytest.raises(CommClosedError, match="is closed"):
            accepted.connection.send_with_buffers(Parcel(1), [b"x"])

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_abort_ends_at_once_and_the_peer_is_told(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send([Note(1)])
        dialled.connection.abort()
        assert dialled.connection.closed
        assert await dialled.told() is None
        await accepted.told()
        assert accepted.messages in ([], [Note(1)])

    play(kind, story)


@pytest.mark.parametrize("kind", ["tcp", "shortcut", "unix"])
def test_a_peer_that_dies_in_the_middle_of_a_buffer_is_lost_with_a_reason(kind: str) -> None:
    """Half a buffer never reaches the owner."""

    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send([Note(1)])
        dialled.connection.send_with_buffers(Parcel(2), [bytes(LARGE_NBYTES)])
        assert dialled.connection.unsent_nbytes > 0
        await accepted.heard(1)
        dialled.connection.abort()
        reason = await accepted.told()
        assert isinstance(reason, CommClosedError)
        assert "middle of a frame" in str(reason) or "reset" in str(reason)
        assert accepted.messages == [Note(1)]
        assert len(accepted.reasons) == 1

    play(kind, story)


@pytest.mark.parametrize("kind", KINDS)
def test_drain_waits_until_the_peer_takes_what_was_sent(kind: str) -> None:
    """An end that has not started does not read, as one that is busy doesn't."""

    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send_with_buffers(Parcel(1), [bytes(LARGE_NBYTES)])
        assert dialled.connection.unsent_nbytes > 1 << 20
        draining = asyncio.ensure_future(dialled.connection.drain())
        dialled.connection.send([Note(2)])
        for _ in range(20):
            await asyncio.sleep(0)
        assert not draining.done()
        accepted.start()
        await draining
        assert dialled.connection.unsent_nbytes <= 1 << 20
        assert await accepted.heard(2) == [Parcel(1), Note(2)]

    play(kind, story, start_server=False)


@pytest.mark.parametrize("kind", KINDS)
def test_drain_ends_when_the_connection_does(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send_with_buffers(Parcel(1), [bytes(LARGE_NBYTES)])
        draining = asyncio.ensure_future(dialled.connection.drain())
        await asyncio.sleep(0)
        dialled.connection.abort()
        await draining

    play(kind, story, start_server=False)


@pytest.mark.parametrize("kind", KINDS)
def test_messages_sent_before_the_peer_started_are_kept_for_it(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        accepted.connection.send([Note(1)])
        accepted.connection.send_with_buffers(Parcel(2), [b"x"])
        await asyncio.sleep(0)
        dialled.start()
        assert await dialled.heard(2) == [Note(1), Parcel(2)]

    play(kind, story, start_client=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_receiver_that_raises_ends_its_connection_and_the_loop_is_told(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        problems: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, told: problems.append(told))
        reasons: asyncio.Queue[Exception | None] = asyncio.Queue()
        error = ValueError("a bug in the receiver")

        def on_messages(messages: list[Any], buffers: list[Any]) -> None:
            raise error

        accepted.connection.start(on_messages, reasons.put_nowait)
        dialled.connection.send([Note(1)])
        assert await reasons.get() is error
        assert [problem["exception"] for problem in problems] == [error]
        await dialled.told()

    play(kind, story, start_server=False)


@pytest.mark.parametrize("kind", KINDS)
def test_a_receiver_may_close_while_it_receives(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        def on_messages(messages: list[Any], buffers: list[Any]) -> None:
            accepted.connection.close()

        reasons: asyncio.Queue[Exception | None] = asyncio.Queue()
        accepted.connection.start(on_messages, reasons.put_nowait)
        dialled.connection.send([Note(1)])
        dialled.connection.send_with_buffers(Parcel(2), [b"x"])
        assert await reasons.get() is None
        assert await dialled.told() is None

    play(kind, story, start_server=False)


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


def test_two_loops_in_two_threads_talk_within_the_process() -> None:
    """The far end answers from its own thread, and all answers come in order."""
    address = address_for("inproc")
    ready, stop = threading.Event(), threading.Event()

    def serve() -> None:
        async def main() -> None:
            async with service(address) as served:
                ready.set()
                end = await served.end()
                await end.heard(300)
                end.connection.send(end.messages)
                await end.told()
                stop.set()

        asyncio.run(main())

    async def main() -> None:
        connection = await connect(address, KEYS, "client", DECODER, timeout_seconds=5)
        dialled = End(connection)
        for number in range(300):
            connection.send([Note(number)])
        assert [note.number for note in await dialled.heard(300)] == list(range(300))
        connection.close()
        await connection.wait_closed()

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(10)
    asyncio.run(main())
    assert stop.wait(10)
    thread.join()


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


@pytest.mark.parametrize("kind", KINDS)
def test_the_list_that_was_sent_may_be_used_again(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        messages = [Note(1), Note(2)]
        dialled.connection.send(messages)
        messages.clear()
        assert await accepted.heard(2) == [Note(1), Note(2)]

    play(kind, story)


@pytest.mark.parametrize("kind", ["tcp", "unix"])
def test_close_does_not_wait_for_ever_for_a_peer_that_does_not_read(kind: str) -> None:
    async def story(dialled: End, accepted: End) -> None:
        dialled.connection.send([Note(1)])
        dialled.connection.close()
        async with asyncio.timeout(5):
            assert await dialled.told() is None

    play(kind, story, start_server=False)
