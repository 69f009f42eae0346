"""Memory for large buffers on their way in.

What a buffer costs beyond the kernel's copy is page faults.  Small ones come from the heap, which
is warm; large ones from a mapping of their own, in huge pages.  Between two processes, 100 MB:
1.4 GB/s into a `bytearray` (which is zeroed as well), 2 into small pages, 5 to 6 into huge ones.
"""

from __future__ import annotations

import mmap
from typing import Final

_MAPPED_NBYTES_MIN: Final = 1 << 22
_HUGE_PAGE_NBYTES: Final = 1 << 21


def allocate(nbytes: int) -> bytearray | memoryview:
    """Writable memory of `nbytes` (at least one), for a buffer to be received into.

    It is freed with its last reference.  Raises MemoryError.  Cost: some us, and the page faults
    of first use.
    """
    if nbytes < _MAPPED_NBYTES_MIN:
        return bytearray(nbytes)
    # A mapping is aligned to huge pages only if its length is a multiple of theirs.
    npages = -(-nbytes // _HUGE_PAGE_NBYTES)
    try:
        mapped = mmap.mmap(
            -1, npages * _HUGE_PAGE_NBYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
        )
    except OSError as error:
        raise MemoryError(f"no room for a buffer of {nbytes:,} bytes ({error.strerror})") from error
    if hasattr(mmap, "MADV_HUGEPAGE"):
        try:
            # Not for the tail: a whole page for a few bytes would be memory that nobody counts.
            mapped.madvise(mmap.MADV_HUGEPAGE, 0, nbytes // _HUGE_PAGE_NBYTES * _HUGE_PAGE_NBYTES)
        except OSError:
            pass  # a kernel without huge pages: slower, and just as good
    return memoryview(mapped)[:nbytes]
