"""Seconds and bytes are read as people write them, and written as people read them."""

import math
from datetime import timedelta

import pytest

from shoal.units import format_nbytes, format_seconds, to_nbytes, to_seconds


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (2, 2.0),
        (0.5, 0.5),
        ("0.5", 0.5),
        ("500ms", 0.5),
        ("5 minutes", 300.0),
        ("inf", math.inf),
        (timedelta(milliseconds=20), 0.02),
    ],
)
def test_a_duration_becomes_seconds(written: float | str | timedelta, seconds: float) -> None:
    assert to_seconds(written) == seconds


@pytest.mark.parametrize(
    ("written", "nbytes"),
    [(12, 12), (1.5, 1), ("12", 12), ("50MB", 50_000_000), ("64MiB", 64 * 2**20), ("1 kiB", 1024)],
)
def test_a_size_becomes_bytes(written: float | str, nbytes: int) -> None:
    assert to_nbytes(written) == nbytes


def test_a_text_without_a_known_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="'5 parsecs' has no unit of time"):
        to_seconds("5 parsecs")
    with pytest.raises(ValueError, match="elephants"):
        to_nbytes("5 elephants")


@pytest.mark.parametrize(
    ("nbytes", "text"),
    [
        (0, "0 B"),
        (900, "900 B"),
        (1000, "0.98 kiB"),
        (2**20, "1.00 MiB"),
        (3 * 2**29, "1.50 GiB"),
        (2**41, "2.00 TiB"),
        (-2048, "-2.00 kiB"),
    ],
)
def test_a_size_is_written_in_the_largest_unit_that_fits(nbytes: int, text: str) -> None:
    assert format_nbytes(nbytes) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 us"),
        (1.2e-6, "1.2 us"),
        (0.35, "350 ms"),
        (12, "12.0 s"),
        (200, "3m 20s"),
        (7500, "2h 5m"),
        (-0.5, "-500 ms"),
    ],
)
def test_a_duration_is_written_with_its_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
