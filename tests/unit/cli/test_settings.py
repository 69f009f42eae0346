"""`shoal config` tells what is set, where, and what it means."""

import dask
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
