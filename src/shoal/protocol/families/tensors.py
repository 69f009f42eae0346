"""torch's tensors: their memory beside the stream; pickle copies it into a zip file in there.

Tensors that are not in the host's memory, or of types that numpy lacks, are left to pickle.
"""

from __future__ import annotations

from typing import Any

import torch

from shoal.protocol.families.arrays import from_array, to_array
from shoal.protocol.families.registry import learn
from shoal.protocol.families.wholes import from_value, to_value

_KINDS = (torch.Tensor, torch.nn.Parameter)


def from_tensor(value: Any) -> tuple[dict[str, Any], list[Any]]:
    """The array that the tensor is a view of, and what it knows beyond that: its gradient, too."""
    headers: list[dict[str, Any]] = []
    frames: list[Any] = []
    tensor = value
    while tensor is not None:
        header, part = _from_one(tensor)
        headers.append({**header, "nframes": len(part)})
        frames.extend(part)
        tensor = tensor.grad if "array" in header else None
    return {"chain": headers}, frames


def _from_one(value: Any) -> tuple[dict[str, Any], list[Any]]:
    if not is_array(value):
        return from_value(value)
    header, frames = from_array(value.detach().numpy())
    is_parameter = isinstance(value, torch.nn.Parameter)
    return {
        "array": header,
        "requires_grad": value.requires_grad,
        "parameter": is_parameter,
    }, frames


def to_tensor(header: dict[str, Any], frames: list[Any]) -> Any:
    """The tensor, in the memory of its frames."""
    stop = len(frames)
    gradient: Any = None
    for part in reversed(header["chain"]):
        start = stop - part["nframes"]
        value = _to_one(part, frames[start:stop])
        if gradient is not None:
            value.grad = gradient
        gradient, stop = value, start
    return gradient


def _to_one(header: dict[str, Any], frames: list[Any]) -> Any:
    if "array" not in header:
        return to_value(header, frames)
    array_header = {**header["array"], "writeable": [True]}  # torch knows no other memory
    value: Any = torch.from_numpy(to_array(array_header, frames))
    if header["parameter"]:
        return torch.nn.Parameter(value, requires_grad=header["requires_grad"])
    return value.requires_grad_() if header["requires_grad"] else value


def is_array(value: Any) -> bool:
    """Whether the tensor is plain memory of this host, of a type that numpy has."""
    if type(value) not in _KINDS or value.device.type != "cpu" or not value.is_leaf:
        return False
    if value.layout != torch.strided or value.is_conj() or value.is_neg() or value.is_quantized:
        return False
    try:
        value.detach().numpy()
    except (TypeError, RuntimeError, IndexError):
        return False
    return True


def teach() -> None:
    """For the registry."""
    learn(torch.Tensor, from_tensor, to_tensor, when=is_array)
    learn(torch.nn.Module, from_value, to_value)
