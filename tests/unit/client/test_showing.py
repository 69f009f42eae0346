"""A client as people see it: its figures while it is connected, and that it isn't."""

from xml.etree import ElementTree

import pytest

from shoal.client.errors import WorkersLate
from shoal.client.showing import as_page, in_a_line
from tests.unit.client.fake_scheduler import play

FACTS = {"n_workers": 6, "total_threads": 12, "total_memory": 6 << 31}


def test_a_line_has_what_a_user_looks_for():
    line = in_a_line("tcp://127.0.0.1:38167", "running", FACTS)
    assert line == "<Client: 'tcp://127.0.0.1:38167' processes=6 threads=12, memory=12.00 GiB>"
    assert in_a_line("tcp://h:1", "running", None) == "<Client: 'tcp://h:1'>"
    assert in_a_line("tcp://h:1", "closed", FACTS) == "<Client: No scheduler connected>"
    assert "connecting" in in_a_line("tcp://h:1", "connecting", None)


@pytest.mark.parametrize(
    ("status", "shown", "hidden"),
    [
        ("running", ("tcp://h:1", "12.00 GiB", 'href="http://h/?a=&lt;1&gt;"'), ("<1>",)),
        ("closed", ("No scheduler connected", "a &amp; b"), ("tcp://h:1", "GiB", "href")),
    ],
)
def test_a_page_is_one_element_that_says_the_same(status, shown, hidden):
    page = as_page("a & b", "tcp://h:1", status, FACTS, "http://h/?a=<1>")
    assert ElementTree.fromstring(page).tag == "div"
    for text in shown:
        assert text in page
    for text in hidden:
        assert text not in page


def test_an_asynchronous_client_shows_what_it_was_told_without_asking():
    async def scenario(client, scheduler):
        nheard = len(scheduler.heard)
        assert repr(client).startswith(f"<Client: '{scheduler.address}' processes=0")
        assert len(scheduler.heard) == nheard
        await client.close()
        assert repr(client) == "<Client: No scheduler connected>"

    play(scenario)


def test_short_times_are_told_in_milliseconds():
    assert "2/10 workers arrived after 1 ms." in str(WorkersLate(10, 2, 0.001))
    assert "2/10 workers arrived after 2.5 s." in str(WorkersLate(10, 2, 2.5))
