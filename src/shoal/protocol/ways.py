"""The ways into the families of types, which are loaded when one of them is needed first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shoal.protocol.teaching import PROTOCOL, pickling


def family_pickler(*args: Any, **kwargs: Any) -> Any:
    """A pickler that asks the families of types, whether or not this process was taught any."""
    from shoal.protocol.families.pickling import Pickler

    return Pickler(*args, **kwargs)


def registered_way() -> Callable[[Any], Any]:
    """Value → how it is reduced by what is registered for its type, else NotImplemented."""
    from shoal.protocol.families.pickling import reduced

    return reduced


def dumps_by_family(
    value: object, protocol: int, buffer_callback: Callable[..., Any] | None = None
) -> bytes:
    """Pickle with what the families of types know.

    Raises:
        Exception: as pickle does, and what a type's own serializer raises.
    """
    from shoal.protocol.families.pickling import dumps

    return dumps(value, protocol, buffer_callback=buffer_callback)


def dumps_by_value(
    value: object,
    buffer_callback: Callable[..., Any] | None = None,
    buffers: list[Any] | None = None,
    protocol: int = PROTOCOL,
) -> bytes:
    """Pickle by cloudpickle, which can do more; what it can't is left to the families of types.

    `buffers`: what the callback collects in, emptied before another attempt.

    Raises:
        Exception: as pickle does, and what a type's own serializer raises.
    """
    if not pickling.is_taught:
        import cloudpickle  # costs 40 ms, and many programs never need it

        try:
            stream: bytes = cloudpickle.dumps(value, protocol, buffer_callback=buffer_callback)
            return stream
        except Exception:
            if buffers:
                buffers.clear()
    from shoal.protocol.families.pickling import dumps_by_value as dumps

    return dumps(value, protocol, buffer_callback=buffer_callback)


def dumps_named(
    value: object, names: Sequence[str], buffer_callback: Callable[..., Any], buffers: list[Any]
) -> bytes | None:
    """See `families.named`."""
    from shoal.protocol.families import named

    return named.dumps_named(value, names, buffer_callback, buffers)


def load_named(stream: bytes, buffers: Iterable[Any], names: Sequence[str]) -> object:
    """See `families.named`."""
    from shoal.protocol.families import named

    return named.load_named(stream, buffers, names)


def named_families(names: Any) -> tuple[str, ...] | None:
    """See `families.named.checked`."""
    from shoal.protocol.families import named

    return named.checked(names)
