"""What the story of a worker says of a key, where others than people read it too."""

from typing import Final

ABANDONED: Final = "abandoned, the scheduler is gone"
ARRIVED: Final = "arrived"
FREED: Final = "freed"
GONE: Final = "gone after its last use"
NOT_TRANSFERRED: Final = "failed, an input could not be transferred"
PUT_HERE: Final = "put here"
RETURNED: Final = "returned"
TO_THREADS: Final = "handed to the threads"
UNAVAILABLE: Final = "inputs are unavailable"
WAITS: Final = "waits for inputs"
