"""`distributed.spill`: mappings of which only a part is in memory."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import pytest

from shoal.compat.serialising.errors import CannotSpill
from shoal.compat.spilling import AnyKeyFile, ManualEvictProto, SpillBuffer
from shoal.protocol.payload import nbytes_of

A, B, C = "a" * 100, "b" * 99, "c" * 98


def test_the_least_recently_used_goes_to_disk_and_comes_back_when_asked_for(
    tmp_path: Path,
) -> None:
    buffer = SpillBuffer(str(tmp_path), target=300)
    assert isinstance(buffer, ManualEvictProto)
    buffer["a"], buffer["b"] = A, B
    assert buffer["a"] == A
    buffer["c"] = C
    assert (set(buffer.fast), set(buffer.slow)) == ({"a", "c"}, {"b"})
    assert buffer.spilled_total.memory == nbytes_of(B)
    assert buffer.spilled_total.disk == sum(f.stat().st_size for f in tmp_path.iterdir())
    assert buffer["b"] == B
    assert (set(buffer.memory), set(buffer.disk)) == ({"b", "c"}, {"a"})
    assert dict(buffer) == {"a": A, "b": B, "c": C}
    del buffer["a"], buffer["b"]
    assert list(buffer) == ["c"]
    assert len(list(tmp_path.iterdir())) == len(buffer.slow)
    with pytest.raises(KeyError):
        buffer["a"]
    with pytest.raises(KeyError):
        del buffer["a"]


def test_what_is_too_large_for_memory_stays_on_disk(tmp_path: Path) -> None:
    buffer = SpillBuffer(str(tmp_path), target=300)
    buffer["x"] = "x" * 500
    assert buffer["x"] == "x" * 500
    assert list(buffer.slow) == ["x"]
    buffer["x"] = "small"
    assert (list(buffer.fast), list(buffer.slow)) == (["x"], [])


def test_it_can_be_told_to_evict(tmp_path: Path) -> None:
    buffer = SpillBuffer(str(tmp_path), target=1000)
    assert buffer.evict() == -1
    buffer["a"] = A
    assert buffer.evict() == nbytes_of(A)
    assert list(buffer.slow) == ["a"]


def test_a_full_disk_leaves_values_in_memory(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    buffer = SpillBuffer(str(tmp_path), target=100, max_spill=150)
    buffer["a"] = A
    buffer["b"] = B
    assert (list(buffer.fast), list(buffer.slow)) == (["b"], ["a"])
    assert "disk reached capacity" in caplog.text
    assert dict(buffer) == {"a": A, "b": B}


class Locked:
    """Can't be pickled."""

    def __init__(self, nbytes: int) -> None:
        self.lock, self.nbytes = threading.Lock(), nbytes

    def __sizeof__(self) -> int:
        return self.nbytes


def test_what_can_not_be_pickled_stays_if_it_fits_and_is_refused_if_not(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    buffer = SpillBuffer(str(tmp_path), target=200)
    with pytest.raises(TypeError, match="Failed to pickle 'x'") as raised:
        buffer["x"] = Locked(500)
    assert isinstance(raised.value, CannotSpill)
    buffer["y"] = Locked(150)
    buffer["a"] = A
    assert set(buffer.fast) == {"a", "y"}
    assert "Failed to pickle 'y'" in caplog.text


def test_keys_that_look_alike_have_files_of_their_own(tmp_path: Path) -> None:
    buffer = SpillBuffer(str(tmp_path), target=0)
    given: dict[Any, Any] = {1: 10, "1": 20, ("a/b", 0): 30}
    buffer.update(given)
    assert dict(buffer.slow) == given


@pytest.mark.parametrize("memmap", [False, True])
def test_bytes_are_kept_in_files_by_any_key(tmp_path: Path, memmap: bool) -> None:
    files = AnyKeyFile(tmp_path / "files", memmap=memmap)
    files["a/b"] = b"one"
    files[1] = [b"o", bytearray(b"ne")]
    files["1"] = b""
    assert [bytes(files[key]) for key in files] == [b"one", b"one", b""]
    files[1] = b"two"
    assert (bytes(files[1]), len(files)) == (b"two", 3)
    del files["a/b"]
    assert "a/b" not in files
    assert len(list((tmp_path / "files").iterdir())) == 2
