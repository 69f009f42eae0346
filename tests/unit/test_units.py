"""Seconds and bytes are read as people write them, and written as people read them."""

import math
import re
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

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


@pytest.mark.parametrize("text", ["", " ", "nan", "-3s", "soon"])
def test_a_text_that_is_no_duration_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ValueError, match=f"{text!r} (is no duration|has no unit of time)"):
        to_seconds(text)


@pytest.mark.parametrize("text", ["", " ", "nan", "inf", "1e400", "-3s", "much", "50%"])
def test_a_text_that_is_no_size_is_refused_with_the_text(text: str) -> None:
    with pytest.raises(ValueError, match=f"{text!r} is no size"):
        to_nbytes(text)


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
        (1e-3, "1 ms"),
        (999.6e-6, "1 ms"),
        (0.9996, "1.0 s"),
        (12, "12.0 s"),
        (119.96, "2m 0s"),
        (3599.7, "1h 0m"),
        (3599.4, "59m 59s"),
        (math.inf, "inf s"),
        (200, "3m 20s"),
        (7500, "2h 5m"),
        (-0.5, "-500 ms"),
    ],
)
def test_a_duration_is_written_with_its_unit(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@given(st.one_of(st.floats(0, 1e7), st.floats(-8, 7).map(lambda power: 10.0**power)))
@example(0.0009995)
@example(0.9995)
@example(3599.5)
@example(119.95)
def test_a_duration_of_any_magnitude_is_read_back_as_it_was(seconds: float) -> None:
    """To three digits, or to what is shown; no number is as large as the next unit."""
    text = format_seconds(seconds)
    words = re.findall(r"([0-9.]+) ?(us|ms|s|m|h)", text)
    assert "".join(f"{number}{unit}" for number, unit in words) == text.replace(" ", "")
    read = sum(float(number) * UNITS[unit] for number, unit in words)
    half_shown = 30.01 if "h" in text else 0.0501 if text.endswith(" s") else 1e-8
    assert read == pytest.approx(seconds, rel=6e-3, abs=half_shown)
    most = {"us": 1000, "ms": 1000, "s": 120, "m": 60, "h": math.inf}
    for number, unit in words:
        assert float(number) < most[unit]
    if len(words) == 2:
        assert float(words[1][0]) < 60
    assert format_seconds(-seconds).removeprefix("-") == text


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
