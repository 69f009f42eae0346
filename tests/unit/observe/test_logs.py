"""What is logged is remembered, and shown as it would be if nobody remembered it."""

import logging

import pytest

from shoal.observe.logs import Log, Logs, RecentLogs, shown_lines, text_of
from tests.programs import run_python


@pytest.fixture
def logger():
    """One that nobody else hears."""
    found = logging.getLogger("of.these.tests")
    found.propagate, before = False, found.propagate
    yield found
    found.propagate = before
    assert not any(isinstance(handler, RecentLogs) for handler in found.handlers)


@pytest.fixture
def recent(logger):
    """Remembers three lines of it."""
    handler = RecentLogs(3, logger.name)
    yield handler
    handler.close()


def test_the_latest_lines_are_kept_the_newest_first(logger, recent):
    for number in range(5):
        logger.warning("line %s", number)
    lines = recent.latest()
    assert [text.rpartition(" - ")[2] for _, text in lines] == ["line 4", "line 3", "line 2"]
    assert {level for level, _ in lines} == {"WARNING"}
    assert recent.latest(1) == lines[:1]
    assert recent.latest(0) == []
    assert recent.latest(-1) == []


def test_a_record_that_can_not_be_written_raises_nothing_where_it_is_logged(recent, capsys):
    """As of every handler, stderr says what is wrong with it."""
    record = {"msg": "a %d", "args": ("text",), "levelno": logging.WARNING}
    recent.handle(logging.makeLogRecord(record))
    assert recent.latest() == []
    assert "a %d" in capsys.readouterr().err


SHOWN = """
import logging
from shoal.observe.logs import RecentLogs

parent, logger = logging.getLogger("of"), logging.getLogger("of.mine")
handlers = [RecentLogs(3, "of.mine"), RecentLogs(3, "of.mine", "of")]
logger.warning("to be seen")
logger.info("not logged at all")
other = logging.Handler()
heard = []
other.emit = heard.append
parent.addHandler(other)
logger.warning("to be heard")
parent.removeHandler(other)
logger.propagate = False
logger.warning("seen again")
for handler in handlers:
    handler.close()
print(len(heard), [len(handler.latest()) for handler in handlers])
"""


def test_what_nobody_else_hears_is_shown_as_python_does_and_once():
    """Warnings on stderr; what has a handler of somebody's is left to that."""
    done = run_python("-c", SHOWN)  # since pytest hears everything, in a process without it
    assert (done.stdout, done.stderr) == ("1 [3, 3]\n", "to be seen\nseen again\n")


def test_nothing_is_heard_after_the_end(logger, recent):
    recent.close()
    logger.warning("later")
    assert recent.latest() == []


def test_lines_are_shown_since_some_time_and_with_it():
    lines = [(3.0, "INFO", "c"), (2.0, "INFO", "b"), (1.0, "INFO", "a")]
    assert shown_lines(lines, 0, None, False) == [("INFO", text) for text in "cba"]
    assert shown_lines(lines, 2, None, True) == lines[:2]
    assert shown_lines(lines, 0, 1, False) == [("INFO", "c")]


def test_a_log_is_a_text_that_a_notebook_shows():
    log = text_of([("INFO", "<b>"), ("INFO", "c")])
    assert log == "<b>\nc"
    assert isinstance(log, Log)
    assert "&lt;b&gt;" in log._repr_html_()
    assert "<summary>x</summary>" in Logs(x=log)._repr_html_()
