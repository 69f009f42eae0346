"""The runner of the acceptance gates: every figure is a line, and one failure fails the run."""

from collections.abc import Iterator

import pytest

from tools.accept.__main__ import main
from tools.accept.figure import GATES, Figure, Gate, Gates
from tools.accept.runner import figures_of, load_gates, run

GOOD = Figure("rate", "120 /s", ">= 100 /s", passed=True)
BAD = Figure("delay", "3 ms", "<= 2 ms", passed=False)


@pytest.fixture
def gates() -> Gates:
    """Three gates, the first of them cheap."""
    some = Gates()
    some.register("rate", cheap=True)(lambda: GOOD)
    some.register("delay")(lambda: BAD)

    @some.register("delays")
    def both() -> Iterator[Figure]:
        yield GOOD
        yield BAD

    return some


def test_a_figure_says_value_target_and_verdict() -> None:
    assert str(GOOD) == "PASS  rate: 120 /s (target: >= 100 /s)"
    assert str(BAD) == "FAIL  delay: 3 ms (target: <= 2 ms)"


def test_each_figure_is_one_line_and_one_failure_fails_the_run(
    gates: Gates, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(gates.chosen()) is False
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == [str(GOOD), str(BAD), str(GOOD), str(BAD)]
    assert lines[-1].startswith("2 passed, 2 failed in ")


def test_a_run_in_which_all_pass_passes_and_an_empty_one_does_not(gates: Gates) -> None:
    assert run(gates.chosen(["rate"])) is True
    assert run([]) is False


def test_gates_are_chosen_by_the_start_of_their_name(gates: Gates) -> None:
    assert [gate.name for gate in gates.chosen(["delay"])] == ["delay", "delays"]
    with pytest.raises(KeyError, match="speed"):
        gates.chosen(["speed"])


def test_cheap_leaves_the_expensive_ones_out(gates: Gates) -> None:
    assert [gate.name for gate in gates.chosen(cheap=True)] == ["rate"]
    assert gates.chosen(["delay"], cheap=True) == []


def test_a_name_is_registered_once(gates: Gates) -> None:
    with pytest.raises(ValueError, match="two gates named 'rate'"):
        gates.register("rate")(lambda: GOOD)


def test_a_gate_that_raises_is_a_failure_with_its_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken() -> Iterator[Figure]:
        yield GOOD
        raise OSError("no cluster")

    first, second = figures_of(Gate("x", broken, is_cheap=False))
    assert first == GOOD
    assert second == Figure("x", "OSError: no cluster", "to be measured", passed=False)
    assert "no cluster" in capsys.readouterr().err


def test_the_command_lists_the_gates_of_every_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    assert "clean checkout\n" in capsys.readouterr().out


def test_the_command_refuses_a_name_that_nothing_has(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refusal:
        main(["--only", "no such gate"])
    assert refusal.value.code == 2
    assert "no gate starts with 'no such gate'" in capsys.readouterr().err


def test_import_shoal_loads_nothing_heavy() -> None:
    load_gates()
    (figure,) = figures_of(GATES.by_name["imports cheaply"])
    assert figure.passed, str(figure)
