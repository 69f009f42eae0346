"""Addresses: every accepted form has one canonical text, the rest is refused with its reason."""

import os

import pytest

from shoal.comms import AddressError
from shoal.comms.addresses import (
    is_on_this_host,
    is_own_host,
    outward_ip,
    parse_address,
    shortcut_names,
)


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("tcp://10.0.0.1:8786", "tcp://10.0.0.1:8786"),
        ("localhost:8786", "tcp://localhost:8786"),
        (" tcp://host:1/ ", "tcp://host:1"),
        ("tcp://[::1]:8786", "tcp://[::1]:8786"),
        ("tcp://:0", "tcp://:0"),
        ("unix:///run/shoal.sock", "unix:///run/shoal.sock"),
        ("unix://@shoal/1", "unix://@shoal/1"),
        ("inproc://10.0.0.1/77/1", "inproc://10.0.0.1/77/1"),
        ("inproc://", "inproc://"),
    ],
)
def test_an_address_has_one_canonical_form(text: str, canonical: str) -> None:
    assert str(parse_address(text)) == canonical
    assert parse_address(canonical) == parse_address(text)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("http://host:1", "'http' is unknown"),
        ("host", "has no port"),
        ("tcp://host:", "has no port"),
        ("tcp://host:eighty", "'eighty' is not a port"),
        ("tcp://host:65536", "not a port"),
        ("tcp://host:٣", "not a port"),
        ("tcp://::1:80", "needs brackets"),
        ("tcp://[::1:80", "brackets"),
        ("unix://relative/path", "absolute path"),
        ("unix://@", "absolute path"),
    ],
)
def test_what_is_no_address_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(AddressError, match="Write tcp://host:port") as caught:
        parse_address(text)
    assert why in str(caught.value)


def test_a_missing_port_is_filled_in_where_there_is_a_default() -> None:
    assert parse_address("tcp://host", default_port=8786).port == 8786
    assert parse_address("tcp://[::1]", default_port=8786).host == "::1"


def test_this_host_is_known_by_loopback_and_by_its_own_address_only() -> None:
    assert is_own_host("127.0.0.1")
    assert is_own_host("127.8.9.10")
    assert is_own_host("::1")
    assert is_own_host(outward_ip())
    assert not is_own_host("192.0.2.77")  # reserved for documentation: nobody's


def test_an_address_is_on_this_host_by_its_numbers_or_our_own_name_and_no_network_is_asked() -> (
    None
):
    for here in (
        "tcp://localhost:1",
        "tcp://127.0.0.1:1",
        "tcp://[::1]:1",
        "unix://@a",
        "inproc://a",
    ):
        assert is_on_this_host(parse_address(here)), here
    assert is_on_this_host(parse_address(f"tcp://{os.uname().nodename}:1"))
    assert is_on_this_host(parse_address(f"tcp://{outward_ip()}:1"))
    for elsewhere in ("tcp://192.0.2.77:1", "tcp://cluster.example:1"):
        assert not is_on_this_host(parse_address(elsewhere)), elsewhere


def test_shortcuts_of_different_services_have_different_names() -> None:
    names = [*shortcut_names("127.0.0.1", 1), *shortcut_names("127.0.0.2", 1)]
    assert sorted(set(names)) == ["@shoal/1", "@shoal/127.0.0.1/1", "@shoal/127.0.0.2/1"]
