"""What a worker's process is said to be where libraries ask `multiprocessing`.

A library in a task that would start a process for each core does so in every thread of every
worker.  joblib, and with it scikit-learn, keeps to one process where `current_process().daemon` is
true; that much is wanted.  What `multiprocessing` makes of it besides, that such a process starts
none at all, is not: tasks load data by pools of their own.
"""

from multiprocessing import current_process
from typing import Any


def appear_daemonic() -> None:
    """From now on `current_process().daemon` is true here, and processes can be started as ever."""
    process: Any = current_process()
    kind = type(process)
    process.__class__ = type(kind.__name__, (kind,), {"daemon": property(_is_daemonic)})


def _is_daemonic(process: object) -> bool:
    """Those that this process starts are what it is told to make them."""
    return True
