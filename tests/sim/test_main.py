"""What the command prints, and how it exits."""

from pathlib import Path

import pytest

from shoal.sim.__main__ import main
from shoal.sim.swarm import expand


def test_the_last_line_sums_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seeds", "6", "--start", "100", "--jobs", "1", "--quiet"]) == 0
    said = capsys.readouterr()
    words = said.out.split()
    assert words[0] == "6"
    assert int(words[2]) > 100
    assert said.out.endswith("events, 0 failures\n")
    assert said.err == ""


def test_a_kept_plan_is_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kept = tmp_path / "plan.txt"
    kept.write_text(repr(expand(104)))
    assert main(["--plan", str(kept)]) == 0
    assert capsys.readouterr().out.startswith("1 plan, ")
