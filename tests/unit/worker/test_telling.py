"""What a worker tells leaves in few frames, and what can't leave stops nothing else."""

import asyncio
import logging
import pickle
import threading

import pytest

from shoal.comms import FrameTooLarge
from shoal.worker.shell.telling import LogForwarding, Telling, facts_of


class ALink:
    """Keeps frames; one that is larger than it takes is refused."""

    def __init__(self, bytes_max=10_000):
        self.frames, self._bytes_max = [], bytes_max

    def send(self, messages):
        nbytes = sum(len(message.value) for message in messages)
        if nbytes > self._bytes_max:
            raise FrameTooLarge("bytes of messages", nbytes, self._bytes_max)
        self.frames.append([(m.topics, pickle.loads(m.value)) for m in messages])


class AWorker(Telling):
    """A worker that does nothing but tell."""

    address = "tcp://a:1"

    def __init__(self, link):
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._link = link


def test_what_threads_tell_in_a_burst_is_one_frame():
    async def scenario():
        link = ALink()
        worker = AWorker(link)

        def burst():
            for number in range(3):
                worker.log_event(["x", "y"], {"n": number})

        thread = threading.Thread(target=burst)
        thread.start()
        thread.join()
        worker.log_event("z", "text")
        assert link.frames == []
        await asyncio.sleep(0)
        told = [(["x", "y"], {"n": n, "worker": "tcp://a:1"}) for n in range(3)]
        assert link.frames == [[*told, (["z"], "text")]]
        worker.log_event("z", 2)
        await asyncio.sleep(0)
        assert link.frames[1:] == [[(["z"], 2)]]

    asyncio.run(scenario())


def test_an_event_that_is_too_large_is_left_out_and_others_are_told(caplog):
    async def scenario():
        link = ALink()
        worker = AWorker(link)
        worker.log_event("x", 1)
        worker.log_event("y", "large" * 10_000)
        worker.log_event("x", 2)
        await asyncio.sleep(0)
        assert link.frames == [[(["x"], 1)], [(["x"], 2)]]

    with caplog.at_level(logging.WARNING, "shoal.worker"):
        asyncio.run(scenario())
    assert "An event of ['y'] is not told" in caplog.text


def test_nothing_is_told_where_there_is_no_scheduler():
    async def scenario():
        worker = AWorker(None)
        worker.log_event("x", 1)
        await asyncio.sleep(0)
        with pytest.raises(TypeError, match="a topic is a text"):
            AWorker(ALink()).log_event(5, 1)

    asyncio.run(scenario())


def test_records_are_told_from_their_level_on_until_that_is_ended():
    told = []
    logger = logging.getLogger("of.this.test")
    forwarding = LogForwarding(lambda topic, facts: told.append((topic, facts["msg"])))
    forwarding.forward("t", logger.name, logging.ERROR)
    logger.warning("below it")
    logger.error("at %s", "it")
    forwarding.forward("t", logger.name, logging.WARNING)
    logger.warning("now")
    logger.warning("of users", extra={"worker": "is a word of theirs"})
    again = logging.makeLogRecord(facts_of(logging.makeLogRecord({"name": logger.name})))
    again.levelno = logging.CRITICAL
    logger.handle(again)  # came from a worker, and does not go there again
    forwarding.close()
    logger.error("no more")
    assert told == [("t", "at it"), ("t", "now"), ("t", "of users")]
