"""What can't be sent is told to whoever waits for its answer, and stops nothing else."""

import pytest

from shoal.protocol.questions import NThreads
from shoal.protocol.topics import TellTopics
from tests.unit.client.fake_scheduler import WORKER, play_over_a_socket


def test_a_call_that_can_not_be_sent_fails_and_others_are_answered(caplog):
    """As one that is too large for a frame."""

    async def scenario(client, scheduler):
        with pytest.raises(TypeError, match="object"):
            await client.session.call(lambda n: TellTopics(n, [object()], b""), timeout_seconds=10)
        assert await client.session.call(NThreads, timeout_seconds=10) == {WORKER: 1}

    play_over_a_socket(scenario)
    assert "could not be sent" in caplog.text
