"""How the page's address is written."""

import logging

import dask.config
import pytest

from shoal.observe.links import dashboard_link
from shoal.testing.watching import captured_logger

PAGE = {"dashboard": 8787}
TEMPLATE = "distributed.dashboard.link"


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("tcp://127.0.0.1:8786", "http://127.0.0.1:8787/status"),
        ("tcp://cluster.example:8786", "http://cluster.example:8787/status"),
        ("tcp://[::1]:8786", "http://[::1]:8787/status"),
        ("tcp://0.0.0.0:8786", "http://127.0.0.1:8787/status"),
        ("inproc://Scheduler-1", "http://127.0.0.1:8787/status"),
        ("unix://@shoal-1", "http://127.0.0.1:8787/status"),
        ("", "http://127.0.0.1:8787/status"),
    ],
)
def test_a_link_leads_to_the_schedulers_host(address: str, link: str) -> None:
    """Or to this machine, if the scheduler can only be reached within it."""
    assert dashboard_link(address, PAGE) == link


def test_there_is_no_link_without_a_page() -> None:
    """An empty text, as upstream has it."""
    assert dashboard_link("tcp://127.0.0.1:8786", {}) == ""


def test_a_page_on_loopback_has_a_link_for_the_schedulers_own_host_alone() -> None:
    """Though others reach the scheduler."""
    services = {"dashboard-on-loopback": 8787}
    link = "http://127.0.0.1:8787/status"
    assert dashboard_link("tcp://10.0.0.5:8786", services, is_beside=True) == link
    assert dashboard_link("tcp://10.0.0.5:8786", services) == ""
    beside = dashboard_link("tcp://10.0.0.5:8786", PAGE, is_beside=True)
    assert beside == "http://10.0.0.5:8787/status"


def test_a_template_may_name_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As hubs want it, by upstream's setting."""
    monkeypatch.setenv("JUPYTERHUB_USER", "ann")
    with dask.config.set({TEMPLATE: "/user/{JUPYTERHUB_USER}/proxy/{port}/status"}):
        assert dashboard_link("tcp://h:1", PAGE) == "/user/ann/proxy/8787/status"
    with dask.config.set({TEMPLATE: "{scheme}://{host}:{port}"}):
        assert dashboard_link("tcp://h:1", PAGE) == "http://h:8787"


def test_a_template_that_can_not_be_filled_is_told_of_once() -> None:
    """The link is asked for by a repr, which must not raise."""
    with (
        dask.config.set({TEMPLATE: "/{NOBODY_HAS_SET_THIS}/status"}),
        captured_logger("shoal.observe", logging.WARNING) as heard,
    ):
        assert dashboard_link("tcp://h:1", PAGE) == "/{NOBODY_HAS_SET_THIS}/status"
        assert dashboard_link("tcp://h:1", PAGE) == "/{NOBODY_HAS_SET_THIS}/status"
    assert heard.getvalue().count("NOBODY_HAS_SET_THIS' is not known") == 1
