"""`shoal config` tells what is set, where, and what it means."""

import dask
import pytest
from click.testing import CliRunner

from shoal import config
from shoal.cli.main import main
from shoal.config.base import setting_names


def shown(*arguments):
    return CliRunner().invoke(main, ["config", *arguments], prog_name="shoal")


def test_every_setting_is_shown_once():
    lines = shown().stdout.splitlines()
    nsettings = sum(len(setting_names(section)) for section in config.SECTIONS)
    assert len(lines) == 2 * nsettings
    assert len({line.partition(":")[0] for line in lines[::2]}) == nsettings


def test_a_setting_is_shown_with_its_value_origin_and_meaning():
    (line, meaning) = shown("nanny.steady").stdout.splitlines()
    assert line == "shoal.nanny.steady-seconds: 1.0 (the default)"
    assert meaning.startswith("    A worker that has lived this long")


def test_the_origin_is_the_name_under_which_it_was_set():
    with dask.config.set({"distributed.comm.timeouts.connect": "2 s"}):
        line = shown("comm.connect").stdout.splitlines()[0]
    assert line.endswith(": 2.0 (dask.config.set, as distributed.comm.timeouts.connect)")


def test_a_value_that_cannot_be_used_is_refused_in_one_line():
    with dask.config.set({"shoal.comm.backlog": "many"}):
        result = shown()
    assert result.exit_code == 2
    assert "shoal.comm.backlog" in result.stderr


def test_a_section_that_there_is_not_is_refused_in_one_line():
    with dask.config.set({"shoal.com.backlog": 5}):
        result = shown("comm")
    assert result.exit_code == 2
    assert "shoal.com can't be used" in result.stderr
    assert "Did you mean comm?" in result.stderr


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("targett", "shoal.worker.memory.target-ratio"),
        ("shoal.comm.conect-seconds", "shoal.comm.connect-seconds"),
        ("distributed.worker.memory.targett", "distributed.worker.memory.target"),
        ("dashbord", "shoal.dashboard.link"),
        ("xyzzy", "without a word shows all"),
    ],
)
def test_a_word_that_no_name_has_is_told_with_those_that_are_near(word, meant):
    result = shown(word)
    assert result.exit_code == 1
    assert result.stdout == ""
    assert f"No setting has {word!r} in its name." in result.stderr
    assert meant in result.stderr


def test_what_is_set_and_is_no_setting_is_shown_as_such():
    with dask.config.set({"distributed.worker.memory.targett": 0.5}):
        result = shown("targett")
    assert result.exit_code == 0
    assert "targett: 0.5 (changes nothing)" in result.stdout
    assert "Did you mean distributed.worker.memory.target?" in result.stdout
