"""What a user of the page may be told: what happened, why, and what to do."""

from __future__ import annotations

from shoal.errors import ShoalError


class PageAddressError(ShoalError, ValueError):
    """A text is not where a page could be served."""

    def __init__(self, given: object, why: str) -> None:
        super().__init__(given, why)
        self.given, self.why = given, why

    def __str__(self) -> str:
        return (
            f"dashboard_address={self.given!r} is not usable: {self.why}. "
            'Write ":8787", "127.0.0.1:0" for any free port, or None for no page.'
        )


class UnknownHost(ShoalError):
    """A browser asked this machine for a page under a name that is not one of its own."""

    def __init__(self, host: str) -> None:
        super().__init__(host)
        self.host = host

    def __str__(self) -> str:
        return (
            f"This page is not served under the name {self.host!r}: it is for this machine only, "
            "and a foreign name that leads here may be a foreign site's.\n"
            "Open it as localhost. If a proxy of yours leads here under that name, say so where "
            "the scheduler starts, with "
            f"dask.config.set({{'shoal.dashboard.hosts': [{self.host!r}]}}).\n"
        )


class OtherSite(ShoalError):
    """A page of another site asked for the live figures."""

    def __init__(self, origin: str) -> None:
        super().__init__(origin)
        self.origin = origin

    def __str__(self) -> str:
        return (
            f"The live figures are not for pages of {self.origin!r}. If that is a proxy of yours, "
            "name its host in the setting shoal.dashboard.hosts.\n"
        )


class NoWebLibrary(ShoalError):
    """The page is asked for where the library that serves it is missing."""

    def __str__(self) -> str:
        return (
            "This scheduler works, but its live page needs aiohttp where the scheduler runs: "
            "pip install 'shoal[dashboard]'. Without it there are health and json/counts.json.\n"
        )
