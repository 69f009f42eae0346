"""`print` and `warn` outside of tasks are the builtins; in tasks they are told as well."""

import pickle
import sys
import warnings

import pytest

from shoal.observe import saying
from shoal.observe.inside import current_task


class ATask:
    """A task whose worker keeps what it is told."""

    def __init__(self):
        self.told = []
        self.worker = self

    def log_event(self, topic, msg):
        self.told.append((topic, msg))


@pytest.fixture
def task():
    """The code of the test is part of it."""
    found = ATask()
    token = current_task.set(found)
    yield found
    current_task.reset(token)


def test_outside_of_tasks_they_are_the_builtins(capsys):
    saying.print("a", 1, sep="-", end="!\n")
    saying.print("b", file=sys.stderr)
    with pytest.warns(FutureWarning, match="care") as caught:
        saying.warn("take care", FutureWarning)
    assert capsys.readouterr() == ("a-1!\n", "b\n")
    assert caught[0].filename == __file__


def test_files_that_are_not_the_same_everywhere_are_refused(tmp_path):
    with open(tmp_path / "x", "w") as file, pytest.raises(TypeError, match=r"sys\.stdout"):
        saying.print("a", file=file)


def test_what_a_task_says_is_told_and_can_be_said_again(task, capsys):
    saying.print("a", 1, sep="-", file=sys.stderr)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        saying.warn("take care", FutureWarning)
    (print_topic, printed), (warn_topic, warned) = task.told
    assert (print_topic, warn_topic) == ("print", "warn")
    assert printed["args"] == ("a", "1")
    assert len(caught) == 1
    capsys.readouterr()

    saying.print_again(printed)  # of this very process
    assert capsys.readouterr() == ("", "")
    saying.print_again({**printed, "home": "elsewhere"})
    assert capsys.readouterr() == ("", "a-1\n")
    saying.warn_again(warned)
    with pytest.warns(FutureWarning, match="take care"):
        saying.warn_again({**warned, "home": "elsewhere"})


def test_what_others_tell_under_the_same_topics_is_said_too(capsys):
    saying.print_again("plain")
    saying.print_again({"args": ("a", 1)})
    with pytest.warns(UserWarning, match="plain"):
        saying.warn_again("plain")
    with pytest.warns(UserWarning, match="care"):
        saying.warn_again({"message": pickle.dumps("care")})
    assert capsys.readouterr() == ("plain\na 1\n", "")


@pytest.mark.parametrize(
    ("again", "said"),
    [
        (saying.print_again, {"args": "not a tuple"}),
        (saying.print_again, {}),
        (saying.print_again, {"args": (), "file": "elsewhere"}),
        (saying.warn_again, {}),
    ],
)
def test_what_makes_no_sense_to_say_is_refused(again, said):
    with pytest.raises(TypeError, match=r"needs|is one of"):
        again(said)
