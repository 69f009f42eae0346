"""`progress`, `print` and `warn`, which programs import beside the client."""

import pytest

import shoal
from shoal import Client, progress
from shoal.compat.progress_bars import ProgressBar, TextProgressBar
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
    first, *_, last, end = capsys.readouterr().out.split("\r")[1:]
    assert first == f"[{' ' * 40}] | 0% Completed | 0 of 4 in 0.0 s"
    assert last.startswith(f"[{'#' * 40}] | 100% Completed | 4 of 4 in ")
    assert (last[-2:], end) == (" s", "\n")


class Drawn(ProgressBar):
    """Remembers what it would draw."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.drawn = []

    def _draw_bar(self, remaining, all, **kwargs):
        self.drawn.append((remaining, all, kwargs["status"]))

    def _draw_stop(self, **kwargs):
        self.drawn.append(kwargs)


def test_bars_of_programs_are_told_how_tasks_end_by_their_keys(capsys):
    with Client(
        processes=False, n_workers=1, threads_per_worker=1, dashboard_address=None
    ) as client:
        good, bad = client.map(half, range(3)), client.submit(half, 3)
        bar = Drawn(good, interval=0)
        client.sync(bar.listen)
        assert bar.drawn[0] == (3, 3, "running")
        assert bar.drawn[-2:] == [(0, 3, "finished"), {"remaining": 0, "status": "finished"}]
        assert (bar.status, bar.comm.closed()) == ("finished", True)

        wrong = Drawn([bad.key], scheduler=client.scheduler.address)
        client.sync(wrong.listen)
        assert wrong.drawn[-1]["status"] == wrong.status == "error"
        assert isinstance(wrong.drawn[-1]["exception"], ValueError)

        left = Drawn(good, complete=False)
        client.gather(good)
        client.sync(left.listen)
        assert left.drawn[-2] == (0, 0, "finished")

        text = TextProgressBar(good, width=10)
        assert text.status == "finished"
    line = capsys.readouterr().out.split("\r")[-2]
    assert line.startswith(f"[{'#' * 10}] | 100% Completed | 3 of 3")


def test_a_bar_without_a_scheduler_says_so():
    with pytest.raises(ValueError, match="No clients found"):
        ProgressBar([])


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
