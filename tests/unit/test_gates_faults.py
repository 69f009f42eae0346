"""The gates of faults, and what a soak makes of its looks at memory."""

from tests.faults.soak import Soak, growth
from tools.accept.gates_faults import figure_of_soak

MIB = 2**20


def test_a_soak_passes_if_it_ended_well_and_nothing_stood_still() -> None:
    good = Soak(1800.0, "3 kills", 40, 9.5)
    assert figure_of_soak(0, f"noise\n{good}\n").passed
    assert not figure_of_soak(1, f"{good}\n").passed
    assert not figure_of_soak(0, str(Soak(1800.0, "3 kills", 40, 15.5))).passed
    assert not figure_of_soak(0, "").passed


def test_what_levels_off_has_not_grown() -> None:
    looks = [{"scheduler": min(100 + 4 * n, 120) * MIB} for n in range(40)]
    assert growth(looks) == ({"scheduler": 0}, [])


def test_what_goes_on_growing_is_complained_about() -> None:
    looks = [{"client": 100 * MIB, "scheduler": (100 + n) * MIB} for n in range(40)]
    grown, complaints = growth(looks)
    assert grown == {"client": 0, "scheduler": 20 * MIB}
    assert complaints == ["scheduler has grown by 20.0 MiB"]


def test_few_looks_show_no_trend() -> None:
    assert growth([{"scheduler": n * MIB} for n in range(7)]) == ({}, [])
