"""What a view can't do, why, and what can."""

from __future__ import annotations


class ReadOnlyView(AttributeError):
    """A program tried to change something through a view of another process."""

    def __init__(self, what: str, name: str) -> None:
        """`what` is viewed; `name`: the attribute that was to be changed."""
        super().__init__(what, name)
        self.what = what
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name!r} can't be changed here: this is a view of {self.what}, which is in a "
            "process of its own.\n"
            "Change it where it is: client.run_on_scheduler(function), whose argument "
            "`dask_scheduler` is the scheduler; or make the cluster with processes=False."
        )


class NotInView(AttributeError):
    """A program asked a view for something that is not told over the wire."""

    def __init__(self, what: str, name: str) -> None:
        super().__init__(what, name)
        self.what = what
        self.name = name

    def __str__(self) -> str:
        return (
            f"{self.name!r} can't be seen from here: this is a view of {self.what}, which is in a "
            "process of its own, and it does not tell everything.\n"
            "Ask where it is: client.run_on_scheduler(lambda dask_scheduler: ...); or make the "
            "cluster with processes=False."
        )


class ViewWouldBlock(RuntimeError):
    """A view has to ask another process, and its caller is on the loop that would be asked by."""

    def __init__(self, name: str) -> None:
        """`name`: of the cluster."""
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"The scheduler of the cluster {self.name!r} is in a process of its own, and can't be "
            "asked without waiting, which an event loop must not do.\n"
            "Await it instead: client.run_on_scheduler(function), client.who_has() and the like; "
            "cluster.scheduler_info needs no waiting."
        )
