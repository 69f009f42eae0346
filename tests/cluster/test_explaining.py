"""Why tasks wait or ran where they did, asked through both faces."""

from shoal import wait
from tests.cluster.faces import ask


def inc(x):
    return x + 1


def test_a_client_is_told_why_a_task_ran_where_it_did_and_what_another_waits_for(play):
    """One has run; the other may run on a worker only that is not there."""

    async def scenario(client):
        done = client.submit(inc, 1, key="done")
        stuck = client.submit(inc, 2, key="stuck", workers=["nobody"], allow_other_workers=False)
        await ask(wait(done))
        text = await ask(client.explain([done, stuck, "unknown"]))
        assert "'done' is memory:" in text
        assert repr(text) == text
        assert "the least to do" in text
        assert "'stuck' is no-worker:" in text
        assert "it may run on nobody only, and none of that name or address is there" in text
        assert text.splitlines()[-1].startswith("'unknown' is not known")
        alone = await ask(client.explain(done))
        assert alone.splitlines()[:2] == text.splitlines()[:2]

    play(scenario)
