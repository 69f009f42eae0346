"""The proxy of these tests does to what passes what it is told to, and nothing else."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic

import pytest

from tests.faults.kit.proxy import Proxy

SECONDS_MAX = 5.0


class Echo:
    """Says again what it hears, to one peer after the other; use it in a `with`."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._run, name="shoal-test-echo")
        self.address = f"tcp://127.0.0.1:{self._listening.getsockname()[1]}"
        self.ends: list[str] = []
        """How each connection has ended."""

    def __enter__(self) -> "Echo":
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _run(self) -> None:
        while True:
            try:
                peer, _ = self._listening.accept()
            except OSError:
                return
            with peer:
                try:
                    while piece := peer.recv(1 << 16):
                        peer.sendall(piece)
                    self.ends.append("closed")
                except ConnectionError:
                    self.ends.append("reset")


@contextmanager
def an_echo() -> Iterator[tuple[Echo, Proxy, socket.socket]]:
    """An echo, a proxy before it, and a connection through that."""
    with (
        Echo() as echo,
        Proxy(echo.address) as proxy,
        socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX) as sock,
    ):
        sock.sendall(b"hello")
        assert heard(sock, 5) == b"hello"
        yield echo, proxy, sock


def heard(sock: socket.socket, nbytes: int) -> bytes:
    """So many bytes, or those until the end."""
    pieces = b""
    while len(pieces) < nbytes and (piece := sock.recv(nbytes - len(pieces))):
        pieces += piece
    return pieces


def test_what_passes_is_the_same_and_so_is_its_end() -> None:
    with an_echo() as (echo, proxy, sock):
        said = bytes(range(256)) * 400
        threading.Thread(target=sock.sendall, args=(said,)).start()
        assert heard(sock, len(said)) == said
        sock.shutdown(socket.SHUT_WR)
        assert sock.recv(1) == b""
        assert echo.ends == ["closed"]
        assert proxy.there.nbytes == proxy.back.nbytes == len(said) + 5
        assert proxy.nconnections == 1


def test_a_delay_is_for_each_piece_and_not_for_their_sum() -> None:
    with an_echo() as (_, proxy, sock):
        proxy.set(proxy.back, delay_seconds=0.1)
        began_at = monotonic()
        for _ in range(10):
            sock.sendall(b"x")
        assert heard(sock, 10) == b"x" * 10
        assert 0.1 <= monotonic() - began_at < 0.6


def test_a_slow_way_is_as_slow_as_it_is_told_to_be() -> None:
    with an_echo() as (_, proxy, sock):
        proxy.set(proxy.there, bytes_per_second=10_000)
        began_at = monotonic()
        sock.sendall(bytes(3_000))
        assert heard(sock, 3_000) == bytes(3_000)
        assert monotonic() - began_at >= 0.2


def test_single_bytes_are_the_same_bytes() -> None:
    with an_echo() as (_, proxy, sock):
        proxy.set(proxy.there, is_split=True)
        proxy.set(proxy.back, is_split=True)
        sock.sendall(b"single bytes")
        assert heard(sock, 12) == b"single bytes"


def test_one_bit_of_the_byte_of_that_number_is_another() -> None:
    with an_echo() as (_, proxy, sock):
        proxy.set(proxy.there, flipped_at=proxy.there.nbytes + 3)
        sock.sendall(b"aaaaaaaa")
        assert heard(sock, 8) == b"aaaqaaaa"


def test_what_is_stopped_goes_on_when_it_may() -> None:
    with an_echo() as (_, proxy, sock):
        proxy.set(proxy.there, is_stopped=True)
        sock.sendall(b"at first, nothing")
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        sock.settimeout(SECONDS_MAX)
        proxy.set(proxy.there, is_stopped=False)
        assert len(heard(sock, 17)) == 17


def test_what_is_swallowed_is_gone_and_nobody_is_told() -> None:
    with an_echo() as (echo, proxy, sock):
        proxy.set(proxy.there, is_swallowed=True)
        sock.sendall(b"into nowhere")
        proxy.mend()
        sock.sendall(b"and back")
        assert heard(sock, 8) in (b"and back", b"into now")  # it may have been on its way
        assert echo.ends == []


def test_so_much_passes_and_then_both_ends_are_closed() -> None:
    with an_echo() as (_, proxy, sock):
        proxy.set(proxy.back, cut_after=proxy.back.nbytes + 4)
        sock.sendall(b"four and more")
        assert heard(sock, 13) == b"four"


def test_what_is_held_is_told_and_goes_on_when_it_may() -> None:
    with an_echo() as (_, proxy, sock):
        held = proxy.hold(proxy.there, 4)
        sock.sendall(b"one!")
        held.result(SECONDS_MAX)
        sock.sendall(b"two!")
        proxy.set(proxy.there, held_after=inf)
        assert heard(sock, 8) == b"one!two!"


def test_a_reset_reaches_both_ends() -> None:
    with an_echo() as (echo, proxy, sock):
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            sock.recv(1)
    assert echo.ends == ["reset"]


def test_of_a_half_open_connection_the_far_end_alone_is_told() -> None:
    with an_echo() as (echo, proxy, sock):
        proxy.forget_far_ends()
        sock.sendall(b"is anybody there?")
        sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            sock.recv(1)
        with socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX) as another:
            another.sendall(b"yes")
            assert heard(another, 3) == b"yes"
    assert echo.ends[0] == "reset"


def is_let_go_of(proxy: Proxy) -> bool:
    """Whether who dials it is."""
    try:
        with socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX) as sock:
            return sock.recv(1) == b""
    except ConnectionResetError:
        return True


def test_whoever_dials_may_be_let_go_of() -> None:
    with an_echo() as (_, proxy, sock):
        proxy.is_busy = True
        assert is_let_go_of(proxy)
        sock.sendall(b"still here")
        assert heard(sock, 10) == b"still here"


def test_whoever_dials_may_be_refused_for_a_while() -> None:
    with an_echo() as (_, proxy, sock):
        proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX)
        sock.sendall(b"still here")
        assert heard(sock, 10) == b"still here"
        proxy.mend()
        with socket.create_connection(("127.0.0.1", proxy.port), SECONDS_MAX) as another:
            assert another.getpeername()[1] == proxy.port


def test_a_proxy_that_leads_nowhere_lets_go_of_who_dials() -> None:
    with Proxy("tcp://127.0.0.1:1") as proxy:
        assert is_let_go_of(proxy)
