"""Every public name of the released `distributed`: here, explained, or listed as to come."""

import os
from collections.abc import Iterator

import dask

from tools.accept.figure import GATES, Figure
from tools.accept.gates_speed import ORACLE
from tools.surface.both import our_surface, surface_of
from tools.surface.compare import compare, count_names
from tools.surface.explained import LATER_MAX, explain, read_later, read_patterns


@GATES.register("names of distributed")
def names_of_distributed() -> Iterator[Figure]:
    """Exports, classes, methods, parameters and defaults.  Some seconds, given an oracle."""
    theirs = surface_of(os.environ.get(ORACLE) or _make_oracle())
    ours = our_surface()
    found = explain(compare(theirs["found"], ours["found"]), read_patterns(), read_later())
    nnames = count_names(theirs["found"])
    nsame = nnames - len(found.stays) - len(found.later) - len(found.neither)
    neither = ", ".join(each.name for each in found.neither[:20])
    yield Figure(
        f"of {nnames} names, parameters and members of distributed {theirs['version']}",
        f"{nsame} are the same, {len(found.stays)} differ for a reason, {len(found.later)} come "
        f"later, {len(found.neither)} neither" + (f" ({neither})" if neither else ""),
        "none that is not in docs/compatibility.md or in the list of what comes later",
        passed=not found.neither,
    )
    listed = len(read_later())
    yield Figure(
        "names in the list of what comes later",
        str(listed) + (f"; explaining nothing: {', '.join(found.stale)}" if found.stale else ""),
        f"<= {LATER_MAX}, and each is needed",
        passed=listed <= LATER_MAX and not found.stale,
    )


def _make_oracle() -> str:
    from benchmarks.environment import ORACLE_FOLDER, ensure_oracle

    version = str(dask.__version__).partition("+")[0]
    return ensure_oracle(
        ORACLE_FOLDER.with_name("oracle-surface"), (f"distributed=={version}", "pandas", "pyarrow")
    )
