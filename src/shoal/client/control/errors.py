"""What can be wrong with names: of topics, and of published values."""

from __future__ import annotations

from shoal.errors import ShoalError


class UnknownTopic(ShoalError, ValueError):
    """No handler of this client hears of a topic."""

    def __init__(self, topic: str) -> None:
        super().__init__(topic)
        self.topic = topic

    def __str__(self) -> str:
        return (
            f"No event handler known for topic {self.topic}. "
            "subscribe_topic(topic, handler) begins, and this ends, the calls of a handler."
        )


class DatasetExists(ShoalError, KeyError):
    """A name is taken."""

    def __init__(self, name: object) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"Dataset {self.name!r} already exists. "
            "publish_dataset(..., override=True) replaces it, unpublish_dataset(name) removes it."
        )


class UnknownDataset(ShoalError, KeyError):
    """Nothing is published under a name."""

    def __init__(self, name: object) -> None:
        super().__init__(name)
        self.name = name

    def __str__(self) -> str:
        return (
            f"Dataset {self.name!r} not found. "
            "list_datasets() has all names; get_dataset(name, default=...) needs none."
        )


class NamelessDataset(ShoalError, ValueError):
    """A value was to be published without a name, or a name without a value."""

    def __init__(self, what: str) -> None:
        """`what`: what was given, `values` or `name`."""
        super().__init__(what)
        self.what = what

    def __str__(self) -> str:
        if self.what == "values":
            return (
                "If name is omitted, positional argument must be a dict, {'x': value}: values were "
                "given without names. Or say publish_dataset(x=value)."
            )
        return (
            "If name is provided, expecting call signature publish_dataset(value, name='x'): no "
            "value was given. Or say publish_dataset({'x': value})."
        )


class AsynchronousMapping(ShoalError, TypeError):
    """`client.datasets` was used in a way that would have to wait."""

    def __init__(self, what: str, method: str) -> None:
        super().__init__(what, method)
        self.what, self.method = what, method

    def __str__(self) -> str:
        return (
            f"Can't use '{self.what}' when the client is asynchronous, as it has to wait. "
            f"Say 'await {self.method}' instead; 'async for' goes through the names as well."
        )


class BlockingMapping(ShoalError, TypeError):
    """`client.datasets` of a blocking client was used in `async for`."""

    def __str__(self) -> str:
        return (
            "Can't use 'async for' with client.datasets when the client is not asynchronous. "
            "Say 'for name in client.datasets', or make an asynchronous client."
        )
