"""What the story of a worker says of a key, where others than people read it too."""

from typing import Final

ABANDONED: Final = "abandoned, the scheduler is gone"
ARRIVED: Final = "arrived"
CANT_BE_WRITTEN: Final = "can't be written to disk"
FILE_LOST: Final = "lost, its file can't be read"
FREED: Final = "freed"
GONE: Final = "gone after its last use"
HELD_BACK: Final = "held back, as memory is short"
NOT_TRANSFERRED: Final = "failed, an input could not be transferred"
PUT_HERE: Final = "put here"
READ_BACK: Final = "is read from disk"
RETURNED: Final = "returned"
SPILLED: Final = "spilled"
TO_THREADS: Final = "handed to the threads"
UNAVAILABLE: Final = "inputs are unavailable"
WAITS: Final = "waits for inputs"
