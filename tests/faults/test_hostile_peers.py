"""Whoever can reach the port but holds no token gets nothing: no code, no memory, no log space."""

import asyncio
import logging
import os
import pickle
import random
import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.comms import AdmissionLimits, FrameTooLarge, ProtocolError, connect, unix
from shoal.comms.greeting import greet
from shoal.protocol.framing import HEADER, FrameLimits
from tests.unit.comms.ends import DECODER, KEYS, End, Note, Service, address_for, service
from tests.until import until

HELLO = b"SHL1\x01\x01" + bytes(32)


class PickleWatch:
    """Counts pickles that are opened.  An audit hook can't be removed, so there is one."""

    def __init__(self) -> None:
        self.nopened = 0
        self.active = False
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: object) -> None:
        if self.active and event.startswith("pickle."):
            self.nopened += 1


WATCH = PickleWatch()


@pytest.fixture
def nothing_is_unpickled() -> Iterator[None]:
    WATCH.active, WATCH.nopened = True, 0
    yield
    WATCH.active = False
    assert WATCH.nopened == 0


class Bomb:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("exit 1",)


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "shoal.comms"]


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def attack(served: Service, sent: bytes, *, hang_up: bool = False) -> bytes:
    """Say `sent` over TCP, and hear until the service hangs up."""
    host, _, port = served.listener.address.removeprefix("tcp://").rpartition(":")
    loop = asyncio.get_running_loop()
    with socket.socket() as sock:
        sock.setblocking(False)
        await loop.sock_connect(sock, (host, int(port)))
        heard = b""
        try:
            await loop.sock_sendall(sock, sent)
            if hang_up:
                sock.shutdown(socket.SHUT_WR)
            while piece := await loop.sock_recv(sock, 4096):
                heard += piece
        except ConnectionError:
            pass  # hung up on us while we spoke
        return heard


async def still_works(served: Service) -> None:
    """A peer with the token is served as ever."""
    nbefore = len(served.ends)
    connection = await connect(served.listener.address, KEYS, "client", DECODER, timeout_seconds=10)
    dialled = End(connection)
    connection.send([Note(7)])
    served_end = await served.end(nbefore)
    assert await served_end.heard(1) == [Note(7)]
    connection.close()
    await dialled.told()


def test_hundreds_of_peers_that_talk_rubbish_are_refused_with_one_line_in_the_log(
    caplog: pytest.LogCaptureFixture, nothing_is_unpickled: None
) -> None:
    """Noise, pickles that run code, web requests, and all of these after a valid hello."""
    chance = random.Random(1)
    before = descriptors()

    async def main() -> None:
        async with service("tcp://127.0.0.1:0") as served:
            bomb = pickle.dumps(Bomb())
            for start in range(0, 400, 40):
                said = [
                    chance.choice([b"", HELLO, HELLO[:20]])
                    + chance.choice([bomb, b"GET / HTTP/1.1\r\n\r\n", chance.randbytes(200)])
                    for _ in range(start, start + 40)
                ]
                async with asyncio.timeout(20):
                    heard = await asyncio.gather(
                        *(attack(served, sent, hang_up=True) for sent in said)
                    )
                assert all(len(answer) <= 70 + 8 + 512 for answer in heard)
            assert served.ends == []
            await still_works(served)

    with caplog.at_level(logging.WARNING, "shoal.comms"):
        asyncio.run(main())
    assert len(lines(caplog)) == 1
    assert descriptors() <= before


def test_a_handshake_that_takes_its_time_is_ended(caplog: pytest.LogCaptureFixture) -> None:
    """Neither silence nor half a hello keeps a descriptor for longer than the deadline."""
    admission = AdmissionLimits(handshake_seconds=0.2)

    async def main() -> None:
        async with service("tcp://127.0.0.1:0", admission=admission) as served:
            async with asyncio.timeout(5):
                heard = await asyncio.gather(*(attack(served, HELLO[:at]) for at in range(30)))
                late = await attack(served, HELLO)
            assert heard == [b""] * 30
            assert len(late) == 70  # the challenge, and then nothing
            assert served.ends == []
            await still_works(served)

    with caplog.at_level(logging.WARNING, "shoal.comms"):
        asyncio.run(main())
    assert len(lines(caplog)) == 1
    assert "took too long" in lines(caplog)[0]


def test_silent_peers_over_the_cap_are_closed_at_once_and_do_not_shut_the_door(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """From one address so many may wait; a process of our own user still gets in beside them."""
    admission = AdmissionLimits(unauthenticated_per_host_max=8, handshake_seconds=30)

    async def main() -> None:
        async with service("tcp://127.0.0.1:0", admission=admission) as served:
            waiting = [asyncio.ensure_future(attack(served, b"")) for _ in range(30)]
            while sum(attacker.done() for attacker in waiting) < 22:
                await asyncio.wait(
                    [attacker for attacker in waiting if not attacker.done()],
                    return_when=asyncio.FIRST_COMPLETED,
                )
            assert sum(attacker.done() for attacker in waiting) == 22
            await still_works(served)
            served.listener.close()
            await asyncio.gather(*waiting)

    with caplog.at_level(logging.WARNING, "shoal.comms"):
        asyncio.run(main())
    assert len(lines(caplog)) == 1
    assert "Too many unauthenticated connections" in lines(caplog)[0]


def test_a_replayed_conversation_lets_nobody_in() -> None:
    """An eavesdropper says again, byte for byte, what a client with the token once said."""

    async def main() -> None:
        recorded = bytearray()
        async with service("tcp://127.0.0.1:0", shortcut=False) as served:
            host, _, port = served.listener.address.removeprefix("tcp://").rpartition(":")

            async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                far_reader, far_writer = await asyncio.open_connection(host, int(port))

                async def carry(
                    source: asyncio.StreamReader,
                    target: asyncio.StreamWriter,
                    keep: bytearray | None,
                ) -> None:
                    while piece := await source.read(4096):
                        if keep is not None:
                            keep += piece
                        target.write(piece)
                    target.close()
                    await target.wait_closed()

                await asyncio.gather(
                    carry(reader, far_writer, recorded), carry(far_reader, writer, None)
                )
                relayed.set_result(None)

            relayed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            spy = await asyncio.start_server(relay, "127.0.0.1", 0)
            spy_port = spy.sockets[0].getsockname()[1]
            connection = await connect(
                f"tcp://127.0.0.1:{spy_port}", KEYS, "client", DECODER, timeout_seconds=5
            )
            connection.send([Note(1)])
            assert await (await served.end()).heard(1) == [Note(1)]
            connection.close()
            await connection.wait_closed()
            await relayed
            spy.close()
            await spy.wait_closed()
            heard = await attack(served, bytes(recorded))
            assert b"proof of the token is wrong" in heard
            assert len(served.ends) == 1

    asyncio.run(main())


LIMITS = FrameLimits(body_bytes_max=1 << 16, buffer_bytes_max=1 << 16)


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (HEADER.pack(1 << 31, 0), FrameTooLarge),
        (HEADER.pack(1, 1 << 31), FrameTooLarge),
        (HEADER.pack(1, 1) + b"\xff" * 8, FrameTooLarge),
        (HEADER.pack(1, 0) + b"\xc1", ProtocolError),
        (HEADER.pack(2, 0) + b"\x91\x80", ProtocolError),
        (HEADER.pack(len(pickle.dumps(Bomb())), 0) + pickle.dumps(Bomb()), ProtocolError),
    ],
    ids=["body", "nbuffers", "buffer", "no msgpack", "no message", "pickle"],
)
def test_a_peer_with_the_token_that_breaks_the_protocol_is_cut_off_with_the_reason(
    sent: bytes, reason: type[Exception], nothing_is_unpickled: None
) -> None:
    """It harms nobody but itself, and no memory is taken for what it announces."""

    async def main() -> None:
        address = address_for("unix")
        async with service(address, limits=LIMITS) as served:
            with await unix.dial(address.removeprefix("unix://")) as sock:
                await greet(sock, KEYS, "worker", served.listener.address)
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
                loop = asyncio.get_running_loop()
                await loop.sock_sendall(sock, sent)
                assert await loop.sock_recv(sock, 1) == b""
            accepted = await served.end()
            assert isinstance(await accepted.told(), reason)
            assert accepted.messages == []
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 50_000  # KB
            await still_works(served)

    asyncio.run(main())


def test_a_service_out_of_descriptors_pauses_and_goes_on_afterwards(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It doesn't spin, it doesn't fill the log, and those who wait in line are let in later."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def main() -> None:
        async with service("tcp://127.0.0.1:0", shortcut=False) as served:
            host, _, port = served.listener.address.removeprefix("tcp://").rpartition(":")
            with socket.socket() as late:
                late.setblocking(False)
                highest = max(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
                fillers = [os.dup(late.fileno()) for _ in range(highest)]  # no gap below
                resource.setrlimit(resource.RLIMIT_NOFILE, (max(fillers) + 1, hard))
                loop = asyncio.get_running_loop()
                await loop.sock_connect(late, (host, int(port)))
                await loop.sock_sendall(late, HELLO)
                await until(lambda: lines(caplog))
                resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
                for filler in fillers:
                    os.close(filler)
                async with asyncio.timeout(5):
                    assert len(await loop.sock_recv(late, 4096)) == 70
            await still_works(served)

    try:
        with caplog.at_level(logging.WARNING, "shoal.comms"):
            asyncio.run(main())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "ulimit -n" in lines(caplog)[0]
    assert sum("Cannot accept" in line for line in lines(caplog)) == 1
