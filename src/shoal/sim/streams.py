"""Chance, by name: each purpose rolls dice of its own.

Were there one generator for everything, removing one fault would move every later decision, and a
failing seed could not be made smaller.  A stream depends on the seed and on its name alone.
"""

from random import Random


class Streams:
    """The dice of one seed."""

    __slots__ = ("_streams", "seed")

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, Random] = {}

    def of(self, purpose: str) -> Random:
        """The generator of `purpose`, e.g. `link worker-1 scheduler`; the same one each time."""
        stream = self._streams.get(purpose)
        if stream is None:
            # Seeding from a text goes through SHA-512, never through hash(): it is the same under
            # every PYTHONHASHSEED.
            stream = self._streams[purpose] = Random(f"{self.seed} {purpose}")
        return stream
