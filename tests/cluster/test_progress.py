"""`progress`, `print` and `warn`, which programs import beside the client."""

import pytest

import shoal
from shoal import Client, progress
from tests.cluster.faces import ask, play_asynchronous


def half(x):
    if x == 3:
        raise ValueError(x)
    return x / 2


def test_the_bar_is_full_when_all_have_ended_and_errors_do_not_raise(capsys):
    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as client:
        futures = client.map(half, range(4))
        progress(futures[:2], futures[2:], notebook=False)
        assert [future.status for future in futures] == ["finished"] * 3 + ["error"]
    first, *_, last = capsys.readouterr().out.split("\r")[1:]
    assert first == f"[{' ' * 40}] 0 of 4 | 0.0 s"
    assert last.startswith(f"[{'#' * 40}] 4 of 4 | ")
    assert last.endswith(" s\n")


def test_nothing_is_shown_for_nothing(capsys):
    progress([])
    assert capsys.readouterr().out == ""


def test_on_the_loop_of_the_client_it_refuses_to_wait():
    async def scenario(client):
        futures = client.map(half, [1])
        with pytest.raises(RuntimeError, match="would wait for the event loop"):
            progress(futures)
        assert await ask(client.gather(futures)) == [0.5]

    play_asynchronous(scenario, processes=False, n_workers=1, dashboard_address=None)


def test_print_and_warn_speak_where_they_are_called(capsys):
    shoal.print("a", "b", sep="-")
    assert capsys.readouterr().out == "a-b\n"
    with pytest.warns(UserWarning, match="beware"):
        shoal.warn("beware")
