"""What the demo shows, on plain output and on a terminal."""

import io

import pytest

from shoal.cli.display import PlainDisplay, RichDisplay, choose_display

HEADS = "airline", "flights"
ROWS = [("United", "57,979"), ("SkyWest", "29")]


def test_plain_progress_is_a_few_lines_and_ends_at_the_end(capsys):
    with PlainDisplay().progress("partitions read") as on_partition:
        for nread in range(101):
            on_partition(nread, 100)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 4
    assert lines[-1] == "partitions read: 100 of 100"


def test_a_plain_table_has_aligned_columns(capsys):
    PlainDisplay().table(HEADS, ROWS)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["airline  flights", "United    57,979", "SkyWest       29"]


def test_output_that_is_no_terminal_is_plain(monkeypatch):
    monkeypatch.setattr("sys.stdout", io.StringIO())
    assert isinstance(choose_display(), PlainDisplay)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_gets_a_bar_and_a_table(monkeypatch):
    pytest.importorskip("rich")
    screen = Terminal()
    monkeypatch.setattr("sys.stdout", screen)
    display = choose_display()
    assert isinstance(display, RichDisplay)
    display.say("[not markup]")
    with display.progress("partitions read") as on_partition:
        on_partition(11, 11)
    display.table(HEADS, ROWS)
    shown = screen.getvalue()
    assert "[not markup]" in shown
    assert "11/11" in shown
    assert "57,979" in shown
