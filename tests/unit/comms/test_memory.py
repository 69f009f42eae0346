"""Memory for received buffers: the right size, writable, on both sides of the threshold."""

import pytest

from shoal.comms.memory import allocate


@pytest.mark.parametrize("nbytes", [1, 4095, (1 << 22) - 1, 1 << 22, (1 << 22) + 1, 5_000_001])
def test_memory_has_the_size_asked_for_and_is_writable(nbytes: int) -> None:
    view = memoryview(allocate(nbytes))
    assert view.nbytes == nbytes
    assert not view.readonly
    view[0] = view[-1] = 7
    assert (view[0], view[-1]) == (7, 7)


def test_more_than_there_is_raises_memory_error() -> None:
    with pytest.raises(MemoryError):
        allocate(1 << 50)
