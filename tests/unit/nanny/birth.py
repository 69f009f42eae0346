"""Processes for these tests, of a zygote or of a fresh interpreter."""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import Any

from shoal.nanny.process import ServiceProcess
from shoal.nanny.zygotes import ZygoteProcess, zygote_for

ENTRY = "tests.unit.nanny.newborn"
SECONDS_MAX = 30.0


def process_of(deed: str, **options: Any) -> ServiceProcess:
    """A process that is not started yet; `options` of it, and of its document."""
    own = {"environ", "memory_limit_nbytes", "on_end"} & set(options)
    document = {
        "deed": deed,
        "path": list(sys.path),
        **{name: value for name, value in options.items() if name not in own},
    }
    return ServiceProcess(
        "the newborn", document, entry=ENTRY, **{name: options[name] for name in own}
    )


@asynccontextmanager
async def born(deed: str, inherited: tuple[int, ...] = (), **options: Any) -> Any:
    """A process that is ready, and is closed in the end."""
    process = process_of(deed, **options)
    try:
        await process.start(inherited)
        await process.ready(SECONDS_MAX)
        yield process
    finally:
        await process.close(SECONDS_MAX)


def words_of(deed: str, **options: Any) -> dict[str, Any]:
    """What a process says of itself."""

    async def main() -> dict[str, Any]:
        async with born(deed, **options) as process:
            return dict(process.words)

    return asyncio.run(main())


def zygote(environ: Mapping[str, str] | None = None) -> ZygoteProcess:
    """The one that processes of this environment come from."""
    return zygote_for(os.environ if environ is None else environ)
