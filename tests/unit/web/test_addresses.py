"""Where a page is served, and under which names it may be asked for."""

import socket

import pytest

from shoal.comms.errors import ListenError
from shoal.web.addresses import Visitors, bind_page, host_name, parse_page_address
from shoal.web.errors import OtherSite, PageAddressError, UnknownHost


@pytest.mark.parametrize(
    ("given", "place"),
    [
        (":8787", ("10.0.0.1", 8787)),
        (8787, ("10.0.0.1", 8787)),
        ("8788", ("10.0.0.1", 8788)),
        (":0", ("10.0.0.1", 0)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("localhost", ("localhost", 8787)),
        ("http://localhost:1234/", ("localhost", 1234)),
        ("*:1234", ("0.0.0.0", 1234)),
        ("[::1]:5", ("::1", 5)),
        (None, None),
        (False, None),
        ("", None),
    ],
)
def test_a_page_address_is_read_as_users_write_it(
    given: object, place: tuple[str, int] | None
) -> None:
    """A missing host is the scheduler's, a missing port the usual one."""
    assert parse_page_address(given, "10.0.0.1") == place


@pytest.mark.parametrize("given", ["host:port", ":99999", True, 1.5, "a:b:c"])
def test_what_is_no_page_address_is_refused_with_the_right_ones(given: object) -> None:
    """So that a typing error does not cost the page in silence."""
    with pytest.raises(PageAddressError, match=r"(?s)is not usable.*:8787.*None for no page"):
        parse_page_address(given, "127.0.0.1")


def test_a_port_that_is_taken_gives_way_to_the_next_that_is_free() -> None:
    """Quietly: two clusters on one machine are nothing to warn of."""
    with bind_page("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        with bind_page("127.0.0.1", port) as second:
            assert second.getsockname()[1] > port


def test_a_host_that_is_not_ours_is_refused() -> None:
    """Another port would not help."""
    with pytest.raises(ListenError, match=r"http://192\.0\.2\.1:0"):
        bind_page("192.0.2.1", 0)


@pytest.mark.parametrize(
    "header", ["localhost:8787", "LOCALHOST", "127.0.0.1:8787", "[::1]:80", "x.localhost", "proxy"]
)
def test_a_page_on_loopback_answers_to_this_machines_names(header: str) -> None:
    """And to those that the configuration adds."""
    Visitors("127.0.0.1", ["Proxy"]).check_name(header)


@pytest.mark.parametrize(
    "header", ["evil.example", "127.0.0.1.evil.example", "127.1", "", "10.0.0.1"]
)
def test_a_page_on_loopback_answers_to_no_foreign_name(header: str) -> None:
    """A site whose name was made to lead here reads nothing."""
    with pytest.raises(UnknownHost, match=r"shoal\.dashboard\.hosts"):
        Visitors("127.0.0.1", []).check_name(header)


def test_a_page_on_other_interfaces_answers_to_any_name() -> None:
    """Which name leads there is for its network to say."""
    Visitors("0.0.0.0", []).check_name("cluster.example")


def test_live_figures_are_for_the_pages_own_site() -> None:
    """Programs, which send no origin, may have them as well."""
    visitors = Visitors("127.0.0.1", ["hub.example"])
    visitors.check_origin(None, "localhost:8787")
    visitors.check_origin("http://localhost:8787", "localhost:8787")
    visitors.check_origin("https://hub.example", "localhost:8787")
    with pytest.raises(OtherSite, match="evil"):
        visitors.check_origin("http://evil.example", "localhost:8787")


def test_a_host_header_is_taken_apart() -> None:
    """With and without port, brackets and a final dot."""
    assert [host_name(text) for text in ("A.b:1", "[::1]:8787", "a.b.", " c ")] == [
        "a.b",
        "::1",
        "a.b",
        "c",
    ]


def test_a_bound_socket_listens_but_does_not_block() -> None:
    """The loop looks after it."""
    with bind_page("127.0.0.1", 0) as sock, socket.create_connection(sock.getsockname()):
        assert sock.getblocking() is False
