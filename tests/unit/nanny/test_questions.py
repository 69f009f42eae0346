"""What a process asks its nanny: words that survive a line of JSON, and answers in any order."""

import asyncio
import json

from shoal.nanny.questions import Asking, answer_to, argument_of
from shoal.protocol.exceptions import to_failure
from shoal.protocol.running import Outcome


def test_answers_go_to_whoever_asked_in_any_order():
    async def scenario():
        asking = Asking(said.append)
        first = asyncio.ensure_future(asking.ask("run", b"\x00one"))
        second = asyncio.ensure_future(asking.ask("run", b"two"))
        await asyncio.sleep(0)
        lines = [json.loads(json.dumps(words)) for words in said]
        assert [argument_of(words) for words in lines] == [b"\x00one", b"two"]
        failed = Outcome(failure=to_failure(LookupError("no")))
        for words, outcome in ((lines[1], failed), (lines[0], Outcome(b"\xff"))):
            asking.answered(json.loads(json.dumps(answer_to(words, outcome))))
        assert (await first).value == b"\xff"
        assert (await second).failure.text == "LookupError: no"

    said = []
    asyncio.run(scenario())


def test_an_answer_that_nobody_waits_for_does_no_harm():
    async def scenario():
        asking = Asking(said.append)
        question = asyncio.ensure_future(asking.ask("run", b""))
        await asyncio.sleep(0)
        question.cancel()
        await asyncio.gather(question, return_exceptions=True)
        asking.answered(answer_to(said[0], Outcome()))

    said = []
    asyncio.run(scenario())
