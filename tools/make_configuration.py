"""`python tools/make_configuration.py`: the manual's page of settings, from the tables of settings.

Run it after a change to `src/shoal/config`; a test says when the page is not current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

from shoal.config import SECTIONS
from shoal.config.base import Settings, setting_names
from shoal.config.legacy import OLD_NAMES
from shoal.config.meaning import meanings
from shoal.config.unheeded import CARRIED, NOT_YET, UNHEEDED

PAGE: Final = Path(__file__).parents[1] / "docs" / "configuration.md"

HEAD: Final = """# Settings

This page is made from the source by `python tools/make_configuration.py`.

Settings are read by Dask's configuration: from YAML files (`~/.config/dask/*.yaml`, `/etc/dask`,
what `DASK_CONFIG` names), then from variables of the environment, then from `dask.config.set` in a
program; the later wins.

| where | how `shoal.comm.connect-seconds` is set |
|---|---|
| a YAML file | `shoal: {comm: {connect-seconds: 10}}` |
| the environment | `SHOAL_COMM__CONNECT_SECONDS=10`, `DASK_SHOAL__COMM__CONNECT_SECONDS=10` |
| a program | `dask.config.set({"shoal.comm.connect-seconds": "10 s"})` |

The names of `distributed` work as well (`distributed.comm.timeouts.connect`), and so do those that
it has renamed; where both are set, ours counts. Names that end in `-seconds` also take texts such
as "500ms" or "5 minutes", those that end in `-bytes` texts such as "64MiB", and `False` or `None`
turns off what may be off; so does 0, where a duration must be positive. A service reads its
settings when it starts; a cluster hands those of its program to the processes that it starts. A
misspelt name below `shoal.`, and a value that makes no sense, are refused with a message; a
misspelt name below `distributed.` changes nothing, and the log says so.

`shoal config` shows every setting, its value, and which file or variable it comes from;
`shoal config WORD` those with WORD in their name.
"""

UNHEEDED_HEAD: Final = """
## Settings of `distributed` that change nothing

Whoever sets one of these to something else than its default is told so, once, by a line in the log.

| setting below `distributed.` | what is so instead |
|---|---|
"""

CARRIED_HEAD: Final = """
## Settings of `distributed` that only programs read

They have the defaults that programs know, and nothing here acts on them but functions that a
program calls itself, such as `distributed.utils_comm.retry_operation`:
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD, *(_section(section) for section in SECTIONS)]
    rows = [f"| `{old}` | {entry.why} |" for old, entry in UNHEEDED.items()]
    carried = "\n".join(f"- `{name}`" for name in CARRIED)
    return "".join(
        [*parts, UNHEEDED_HEAD, "\n".join(rows), "\n", CARRIED_HEAD, "\n", carried, "\n"]
    )


def _section(section: type[Settings]) -> str:
    texts = meanings(section)
    defaults = section()
    lines = [
        f"\n## {section.path}\n",
        " ".join((section.__doc__ or "").split()) + "\n",
        "| setting below `shoal.` | default | meaning | below `distributed.` |",
        "|---|---|---|---|",
    ]
    for field, last in setting_names(section).items():
        name = f"{section.path}.{last}"
        text = texts[field] + (f" **Not heeded yet:** {NOT_YET[name]}" if name in NOT_YET else "")
        old = f"`{OLD_NAMES[name]}`" if name in OLD_NAMES else ""
        default = _shown(getattr(defaults, field))
        lines.append(f"| `{name}` | {default} | {text} | {old} |")
    return "\n".join(lines) + "\n"


def _shown(value: Any) -> str:
    """A default, as it is written in a YAML file."""
    if value is None:
        return "off"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def main() -> int:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
