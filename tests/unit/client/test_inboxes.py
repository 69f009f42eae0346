"""What was published and has come: each value goes to one of those who wait."""

import asyncio

import pytest

from shoal.client.inboxes import Inbox, Subscriptions, on_published
from shoal.comms import CommClosedError
from shoal.protocol.coordination import Published


class Session:
    """With one set of subscriptions."""

    def __init__(self):
        self.subscriptions = Subscriptions()

    def state_of(self, kind):
        return self.subscriptions


def test_a_message_comes_to_its_subscription_as_long_as_that_is_there():
    session, inbox = Session(), Inbox("c")
    session.subscriptions.by_claim[1] = inbox
    on_published(session, Published(1, [b"a"]), [])
    on_published(session, Published(2, [b"b"]), [])
    assert list(inbox.values) == [[b"a"]]
    del inbox
    on_published(session, Published(1, [b"c"]), [])
    assert len(session.subscriptions.by_claim) == 0


def test_who_waits_is_served_in_order_and_who_gives_up_costs_no_value():
    async def scenario():
        inbox = Inbox("c")
        first, second = (asyncio.ensure_future(inbox.take("a")) for _ in range(2))
        await asyncio.sleep(0)
        inbox.put([b"1"])
        first.cancel()  # as the value was about to be his
        assert await second == [b"1"]
        with pytest.raises(asyncio.CancelledError):
            await first

    asyncio.run(scenario())


def test_the_end_of_the_session_ends_every_wait():
    async def scenario():
        session, inbox = Session(), Inbox("c")
        session.subscriptions.by_claim[1] = inbox
        waiting = [asyncio.ensure_future(inbox.take("tcp://a:1")) for _ in range(2)]
        await asyncio.sleep(0)
        inbox.put([b"1"])
        await session.subscriptions.close()
        first, second = await asyncio.gather(*waiting, return_exceptions=True)
        assert first == [b"1"]
        assert isinstance(second, CommClosedError)

    asyncio.run(scenario())
