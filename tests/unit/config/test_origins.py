"""Where the value of a setting comes from: the environment, a file, a program, or nowhere."""

import os
from pathlib import Path

import dask
import pytest

from shoal import config
from shoal.cli.settings import settings
from shoal.compat.defaults import enter_defaults
from shoal.config import environment
from shoal.config.origins import Origins
from tests.programs import printed_by

NAME = "scheduler.allowed-failures"


@pytest.fixture(autouse=True)
def drop_in():
    """The defaults of the drop-in are there, as where it is installed, and go again."""
    before, defaults = dict(dask.config.config), list(dask.config.defaults)
    enter_defaults()
    yield
    dask.config.config.clear()
    dask.config.config.update(before)
    dask.config.defaults[:] = defaults


def test_what_nobody_has_set_is_the_default_though_the_drop_in_has_entered_it():
    assert dask.config.get(f"distributed.{NAME}") == 3
    assert Origins().of(NAME) == "the default"


@pytest.mark.parametrize("name", [f"shoal.{NAME}", f"distributed.{NAME}"])
def test_what_a_program_has_set_is_said_to_be_so(name):
    with dask.config.set({name: 7}):
        said = Origins().of(NAME)
    assert said == (
        "dask.config.set" if name.startswith("shoal") else f"dask.config.set, as {name}"
    )


def test_a_file_is_named_even_if_it_says_what_is_the_default(tmp_path, monkeypatch):
    (tmp_path / "one.yaml").write_text("distributed: {scheduler: {allowed-failures: 1}}")
    (tmp_path / "two.yaml").write_text("distributed: {scheduler: {allowed-failures: 3}}")
    monkeypatch.setattr(dask.config, "paths", [str(tmp_path)])
    assert Origins().of(NAME) == f"{tmp_path / 'two.yaml'}, as distributed.{NAME}"


def test_a_file_is_named_that_has_a_name_which_was_given_up_long_ago(tmp_path, monkeypatch):
    (tmp_path / "old.yaml").write_text("allowed-failures: 7")
    monkeypatch.setattr(dask.config, "paths", [str(tmp_path)])
    dask.config.config.clear()
    dask.config.update(dask.config.config, *dask.config.collect_yaml([str(tmp_path)]))
    enter_defaults()
    assert config.read(config.Scheduler).allowed_failures == 7
    assert Origins().of(NAME) == f"{tmp_path / 'old.yaml'}, as distributed.{NAME}"


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("SHOAL_SCHEDULER__ALLOWED_FAILURES", ""),
        ("DASK_SHOAL__SCHEDULER__ALLOWED_FAILURES", ""),
        ("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", f", as distributed.{NAME}"),
    ],
)
def test_a_variable_counts_and_is_named(variable, said):
    program = (
        "from shoal import config; from shoal.config.origins import Origins; "
        f"print(config.read(config.Scheduler).allowed_failures, Origins().of({NAME!r}))"
    )
    printed = printed_by("-c", program, environ={**os.environ, variable: "5"})
    assert printed.strip() == f"5 {variable}{said}"


def test_a_variable_wins_over_a_file_and_a_program_over_both(tmp_path, monkeypatch):
    (tmp_path / "file.yaml").write_text("shoal: {comm: {backlog: 1, connect-seconds: 1}}")
    monkeypatch.setattr(dask.config, "paths", [str(tmp_path)])
    dask.config.refresh()
    dask.config.set({"shoal.comm.connect-seconds": 2})
    environment.enter({"SHOAL_COMM__BACKLOG": "3", "SHOAL_COMM__CONNECT_SECONDS": "'3s'"})
    found = config.read(config.Comm)
    assert (found.backlog, found.connect_seconds) == (3, 2.0)


def test_a_variable_may_hold_names_and_their_values(tmp_path, monkeypatch):
    """Dots in those are their own; and nothing is a value, too."""
    monkeypatch.setattr(dask.config, "paths", [str(tmp_path)])
    name = "SHOAL_SCHEDULER__DEFAULT_TASK_DURATIONS"
    environment.enter({name: "{'a.b': 1, 'my_f': '2s'}", "SHOAL_WORKER__RESOURCES": "{'GPU': 2}"})
    assert config.read(config.Scheduler).default_task_durations == {"a.b": 1.0, "my_f": 2.0}
    assert config.read(config.Worker).resources == {"GPU": 2.0}
    dask.config.set({"shoal": {}})
    environment.enter({name: "{}"})
    assert config.read(config.Scheduler).default_task_durations == {}


def test_a_variable_without_a_section_is_no_setting():
    assert environment.name_of("SHOAL_TOKEN") == environment.name_of("PATH") == ""
    before = dict(dask.config.config)
    environment.enter({"SHOAL_TOKEN": "x", "DASK_SHOAL__COMM__BACKLOG": "5"})
    assert dask.config.config == before


def test_variables_count_when_the_configuration_is_read_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(dask.config, "paths", [str(tmp_path)])
    monkeypatch.setenv("SHOAL_COMM__BACKLOG", "3")
    for _ in range(2):
        dask.config.refresh()
        assert config.read(config.Comm).backlog == 3
    dask.config.set({"shoal.comm.backlog": 4})
    assert config.read(config.Comm).backlog == 4


def test_a_variable_that_hides_the_setting_of_another_is_refused_and_both_are_named(monkeypatch):
    monkeypatch.setenv("DASK_SHOAL__COMM", "3")
    monkeypatch.setenv("SHOAL_COMM__BACKLOG", "3")
    dask.config.refresh()
    with pytest.raises(config.SettingError, match=r"DASK_SHOAL__COMM sets .*SHOAL_COMM__BACKLOG"):
        config.read(config.Worker)


def test_a_value_in_place_of_a_section_is_refused():
    with (
        dask.config.set({"shoal": {"comm": 3}}),
        pytest.raises(config.SettingError, match=r"shoal\.comm can't be used: it is 3"),
    ):
        config.read(config.Comm)


def test_the_command_tells_defaults_from_what_was_set(capsys):
    with dask.config.set({"distributed.scheduler.worker-ttl": "7s"}):
        settings(["scheduler"], standalone_mode=False)
    lines = [line for line in capsys.readouterr().out.splitlines() if not line.startswith(" ")]
    assert "shoal.scheduler.allowed-failures: 3 (the default)" in lines
    assert (
        "shoal.scheduler.worker-ttl-seconds: 7.0 (dask.config.set, as "
        "distributed.scheduler.worker-ttl)" in lines
    )


def test_the_command_shows_what_is_not_heeded(capsys):
    with dask.config.set({"distributed.worker.use-file-locking": False}):
        settings([], standalone_mode=False)
        shown = capsys.readouterr().out
        settings(["tick.limit"], standalone_mode=False)
        asked = capsys.readouterr().out
    assert "distributed.worker.use-file-locking: False (changes nothing)" in shown
    assert "distributed.admin.tick.limit" not in shown
    assert "distributed.admin.tick.limit: '3s' (changes nothing)" in asked
    assert Path(__file__).name not in shown
