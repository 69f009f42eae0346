"""A client as people are shown it: in a line, or in a notebook's page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any, Final

from dask.utils import format_bytes

ASK_SECONDS: Final = 0.5
"""What a text may cost a blocking client, which asks the scheduler for its figures."""

_UNCONNECTED: Final = "No scheduler connected"


def in_a_line(address: str, status: str, facts: Mapping[str, Any] | None) -> str:
    """What `repr` says.

    Args:
        facts: of the scheduler, as `scheduler_info` has them; None: they are not to be had now.
    """
    if status != "running":
        return f"<Client: {_UNCONNECTED}{'' if status == 'closed' else f', {status}'}>"
    if facts is None:
        return f"<Client: {address!r}>"
    return (
        f"<Client: {address!r} processes={facts['n_workers']} "
        f"threads={facts['total_threads']}, memory={format_bytes(facts['total_memory'])}>"
    )


def as_page(
    name: str, address: str, status: str, facts: Mapping[str, Any] | None, link: str
) -> str:
    """What a notebook shows, as one element of HTML.

    Args:
        name: of the client.
        link: of the scheduler's page; "" if there is none.
    """
    rows = [("Client", escape(name))]
    if status != "running":
        rows.append(("Scheduler", _UNCONNECTED))
    else:
        rows.append(("Scheduler", escape(address)))
        if link:
            rows.append(("Dashboard", f'<a href="{escape(link)}">{escape(link)}</a>'))
    if status == "running" and facts is not None:
        rows.append(("Workers", str(facts["n_workers"])))
        rows.append(("Total threads", str(facts["total_threads"])))
        rows.append(("Total memory", format_bytes(facts["total_memory"])))
    cells = "".join(
        f"<tr><td><strong>{label}: </strong></td><td>{shown}</td></tr>" for label, shown in rows
    )
    return f"<div><table>{cells}</table></div>"
