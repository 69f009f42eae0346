"""The three descriptors that every process has, and that a task may have closed."""

from __future__ import annotations

import os
from typing import Final

STANDARD: Final = (0, 1, 2)


def reopen_standard() -> None:
    """Let standard input, output and error lead nowhere if somebody has closed them.

    Else the next connection would get such a number, and what tasks print would go to a peer.
    Cost: three system calls.
    """
    for number in STANDARD:
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, os.O_RDWR)  # the lowest number that is free
            if opened == number:
                os.set_inheritable(opened, True)
            else:
                os.close(opened)
