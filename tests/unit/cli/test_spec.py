"""What `shoal spec` reads."""

import json
import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

from shoal.cli.errors import NotASpec
from shoal.cli.main import main
from shoal.cli.spec import read_spec

ONE = '{"cls": "a.B", "opts": {"x": 1}}'


def test_a_spec_is_one_service_or_several_by_name(tmp_path):
    file = tmp_path / "spec.yaml"
    file.write_text("first:\n  cls: a.B\nsecond:\n  cls: c.D\n")
    assert read_spec(ONE, None) == {None: {"cls": "a.B", "opts": {"x": 1}}}
    assert read_spec("", str(file)) == {"first": {"cls": "a.B"}, "second": {"cls": "c.D"}}


@pytest.mark.parametrize(
    "text",
    [
        *("{", "[]", "{}", "{}x", '{"opts": {}}', '{"a": {"opts": 1}}', '"cls"'),
        *('{"cls": 5}', '{"cls": "a.B", "opts": [1]}'),
    ],
)
def test_what_is_no_spec_is_said_in_one_line(text):
    with pytest.raises(NotASpec, match="no spec of services"):
        read_spec(text, None)
    answer = CliRunner().invoke(main, ["spec", "--spec", text], prog_name="shoal")
    assert answer.exit_code == 2
    assert len(answer.output.splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("Worker", ["spec", "--spec", json.dumps({"cls": "Worker", "opts": None})]),
        ("os.nothing", ["worker", "tcp://127.0.0.1:1", "--nanny", "--worker-class", "os.nothing"]),
        ("no.W", ["worker", "tcp://127.0.0.1:1", "--no-nanny", "--worker-class", "no.W"]),
    ],
)
def test_a_class_that_is_not_to_be_found_is_said_in_one_line(name, line):
    environ = {**os.environ, "SHOAL_TOKEN": "0123456789abcdef0123456789abcdef"}
    command = [sys.executable, "-m", "shoal", *line]  # what it sets in its process is its own
    ended = subprocess.run(
        command, check=False, env=environ, capture_output=True, text=True, timeout=30
    )
    assert ended.returncode == 1
    (said,) = ended.stderr.splitlines()
    assert said.startswith(f"Error: There is no class '{name}' to import: ")


def test_a_file_that_is_not_there_or_no_yaml_is_no_spec(tmp_path):
    with pytest.raises(NotASpec, match="No such file"):
        read_spec("", str(tmp_path / "nowhere"))
    file = tmp_path / "spec.yaml"
    file.write_text("a: [")
    with pytest.raises(NotASpec):
        read_spec("", str(file))


@pytest.mark.parametrize("arguments", [[], ["--spec", ONE, "--spec-file", "x"]])
def test_exactly_one_of_two_ways_is_needed(arguments):
    answer = CliRunner().invoke(main, ["spec", *arguments], prog_name="shoal")
    assert answer.exit_code == 2
    assert "exactly one of --spec and --spec-file" in answer.output
