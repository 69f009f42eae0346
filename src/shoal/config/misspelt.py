"""Names below `distributed.` that are no settings, here or there, and what they may have meant.

Third parties keep settings of their own below `distributed.`; those that we know of are in
`OF_OTHERS`.  Another name changes nothing, and whoever set it believes that it does.
"""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from typing import Any, Final

from shoal.config.legacy import LEGACY
from shoal.config.unheeded import CARRIED, UNHEEDED

OF_OTHERS: Final = frozenset(
    (
        "comm.ucx",  # connections of dask-cuda and ucxx
        "logging",  # what `initialize_logging` reads
        "logging-file-config",
        "rmm",  # memory of graphics cards
        "scheduler.pickle",  # refused where it is not the default
    )
)
"""Settings, or whole sections, below `distributed.` that are read by others, or elsewhere."""

NEAR_MAX: Final = 2
"""Names that are suggested for one."""


def misspelt(given: Any) -> Iterator[tuple[str, list[str]]]:
    """Full name of what is set below `distributed.` and nobody reads, and the names near it.

    Args:
        given: all that is set there.

    Cost: 0.1 ms for what the drop-in enters.
    """
    if not isinstance(given, Mapping):
        return
    settings, sections = _known()
    waiting = [("", given)]
    while waiting:
        path, inside = waiting.pop()
        for word, value in inside.items():
            name = f"{path}{str(word).replace('_', '-')}"
            if name in settings or value is None:
                continue
            if isinstance(value, Mapping) and (value or name in sections):
                waiting.append((f"{name}.", value))  # even if that is no section: what is in it?
            else:
                yield (
                    f"distributed.{path}{word}",
                    [f"distributed.{near}" for near in nearest(name, settings)],
                )


def nearest(name: str, known: Collection[str]) -> list[str]:
    """Up to `NEAR_MAX` names that this one may stand for, which may lack its first words.

    Those of its own section that are written much like it; else those that end like it.
    """
    from difflib import get_close_matches  # only here, as it is rare

    section, _, last = name.rpartition(".")
    beside = {each.rpartition(".")[2]: each for each in known if each.rpartition(".")[0] == section}
    near = [beside[word] for word in get_close_matches(last, beside, n=NEAR_MAX)]
    near = near or [each for each in known if each.endswith(f".{last}")]
    if not near:
        nwords = name.count(".") + 1
        tails: dict[str, list[str]] = {}
        for each in known:
            words = each.split(".")
            for tail in [".".join(words[-nwords:])] if nwords > 1 else words:
                tails.setdefault(tail, []).append(each)
        for tail in get_close_matches(name, tails, n=NEAR_MAX):
            near += tails[tail]
    return near[:NEAR_MAX]


@cache
def _known() -> tuple[dict[str, None], frozenset[str]]:
    """All settings below `distributed.`, and all sections that have any, without that word."""
    names = dict.fromkeys([*LEGACY, *UNHEEDED, *CARRIED, *sorted(OF_OTHERS)])
    parts = [name.split(".") for name in names]
    return names, frozenset(".".join(each[:n]) for each in parts for n in range(1, len(each)))
