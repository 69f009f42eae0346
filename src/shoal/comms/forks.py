"""What a fork of the user's process, or of a worker's, must not take along.

A child made by `os.fork` or `multiprocessing` has copies of our descriptors and objects.  A copy of
a descriptor would hold up its end for those who wait for that: nobody would notice that a worker
was killed, as long as what its tasks forked lives on.  And a copy of a cluster that is closed would
close the parent's.  So the child lets go of everything that is registered here.
"""

from __future__ import annotations

import os
import weakref
from typing import Protocol


class Disowned(Protocol):
    """Something that belongs to the process that made it, and to no copy of it."""

    def disown(self) -> None:
        """Close the descriptors, tell nobody, and do nothing from now on."""


_ours: weakref.WeakSet[Disowned] = weakref.WeakSet()


def belongs_to_this_process(thing: Disowned) -> None:
    """Have a child of a fork disown `thing`, if it is still in use then."""
    _ours.add(thing)


def _disown_all() -> None:
    for thing in list(_ours):
        thing.disown()
    _ours.clear()


if hasattr(os, "register_at_fork"):  # else there is no fork either
    os.register_at_fork(after_in_child=_disown_all)
