"""Seconds and bytes are read as people write them, and written as people read them."""

import math
from datetime import timedelta

import numpy as np
import pytest

from shoal.units import format_nbytes, format_seconds, to_count, to_nbytes, to_seconds


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


def test_counts_are_whole_numbers_of_any_kind() -> None:
    assert [to_count("n", value) for value in (0, 3, np.int64(4))] == [0, 3, 4]


@pytest.mark.parametrize("value", ["two", "2", 1.5, 2.0, None, [1]])
def test_what_is_no_whole_number_is_named_with_what_is_allowed(value: object) -> None:
    with pytest.raises(TypeError, match=r"n_workers is a whole number from 1 on, not ") as caught:
        to_count("n_workers", value, 1)
    assert repr(value) in str(caught.value)


def test_a_count_that_is_too_small_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"threads is a whole number from 1 on, not 0"):
        to_count("threads", 0, 1)
