"""What a process says to its owner: at once, and without waiting for it to listen."""

import asyncio
import json
import socket
import subprocess
import sys
import threading

from shoal.deploy.lifeline import Lifeline


def test_words_that_nobody_reads_yet_hold_up_nobody():
    async def scenario(lifeline, theirs):
        words = [{"text": "x" * 2_000_000}, {"n": 1}, {"n": 2}]
        for word in words:
            lifeline.tell(word)  # nobody reads: a sender that waits would wait for ever
        assert any(thread.name == "shoal-words" for thread in threading.enumerate())
        saying = asyncio.ensure_future(lifeline.said_all())
        with theirs.makefile("rb") as lines:
            heard = [json.loads(await asyncio.to_thread(lines.readline)) for _ in words]
        await saying
        assert heard == words

    ours, theirs = socket.socketpair()
    with ours, theirs:
        asyncio.run(asyncio.wait_for(scenario(Lifeline(ours), theirs), 30))


def test_small_words_are_said_at_once():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        Lifeline(ours).tell({"n": 1})
        theirs.setblocking(False)
        assert json.loads(theirs.recv(100)) == {"n": 1}


def test_words_for_an_owner_that_is_gone_are_for_nobody():
    ours, theirs = socket.socketpair()
    with ours:
        theirs.close()
        lifeline = Lifeline(ours)
        lifeline.tell({"n": 1})
        lifeline.tell({"n": 2})
        asyncio.run(asyncio.wait_for(lifeline.said_all(), 30))


LEFT_BEHIND = """
import threading
from concurrent.futures import ThreadPoolExecutor
from shoal.deploy.lifeline import exit_within
ThreadPoolExecutor(1).submit(threading.Event().wait)
exit_within(0.05, 7)
"""


def test_a_thread_of_a_pool_that_never_ends_does_not_keep_the_process():
    assert (
        subprocess.run([sys.executable, "-c", LEFT_BEHIND], timeout=30, check=False).returncode == 7
    )
