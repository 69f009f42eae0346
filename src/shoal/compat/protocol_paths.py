"""Rows of `paths.py` for serialisation: `distributed.protocol` and its modules."""

from __future__ import annotations

from typing import Final

from shoal.compat.homes import homes_of

_COMPRESSION: Final = homes_of(
    ("shoal.compat.serialising.compressing", "decompress, maybe_compress")
)
_CUDA: Final = homes_of(
    ("shoal.compat.serialising.serialising", "cuda_deserialize, cuda_serialize")
)
_MESSAGES: Final = homes_of(("shoal.compat.serialising.messages", "dumps, loads"))
_WRAPPERS: Final = homes_of(
    ("shoal.compat.serialising.wrappers", "Pickled, Serialize, Serialized, ToPickle, to_serialize")
)
_SERIALIZE: Final = _WRAPPERS | homes_of(
    (
        "shoal.compat.serialising.serialising",
        "dask_deserialize, dask_serialize, deserialize, register_generic",
    ),
    ("shoal.compat.serialising.serialising", "register_serialization_family, serialize"),
    (
        "shoal.compat.serialising.splitting",
        "deserialize_bytes, serialize_bytelist, serialize_bytes",
    ),
    ("shoal.protocol.families.registry", "register_serialization"),
)
_FRAMES: Final = homes_of(
    (
        "shoal.compat.serialising.memory",
        "BIG_BYTES_SHARD_SIZE, address_of_memoryview, ensure_memoryview",
    ),
    ("shoal.compat.serialising.memory", "frame_split_size, host_array, host_array_from_buffers"),
    ("shoal.compat.serialising.memory", "merge_memoryviews, msgpack_opts, nbytes, pack_frames"),
    ("shoal.compat.serialising.memory", "pack_frames_prelude, unpack_frames"),
)
_PICKLE: Final = {"pickle": "shoal.compat.pickling:"}
_MSGPACK: Final = {"msgpack": "msgpack:"}

PROTOCOL_PATHS: Final[dict[str, dict[str, str]]] = {
    "distributed.comm.utils": homes_of(
        ("shoal.compat.functions", "get_ip, get_ipv6"),
        ("shoal.compat.looping", "offload"),
        ("shoal.compat.serialising.memory", "nbytes"),
        ("shoal.compat.serialising.sizes", "safe_sizeof"),
        ("shoal.compat.serialising.streams", "OFFLOAD_THRESHOLD, from_frames, to_frames"),
    ),
    "distributed.protocol": _SERIALIZE | _COMPRESSION | _CUDA | _MESSAGES | _PICKLE | _MSGPACK,
    "distributed.protocol.arrow": homes_of(
        (
            "shoal.protocol.families.arrow",
            "from_batch as serialize_batch, from_table as serialize_table",
        ),
        (
            "shoal.protocol.families.arrow",
            "to_batch as deserialize_batch, to_table as deserialize_table",
        ),
        ("shoal.protocol.families.arrow", "from_description as serialize_fileinfo"),
    ),
    "distributed.protocol.compression": _COMPRESSION
    | homes_of(
        (
            "shoal.compat.serialising.compressing",
            "AnyBytes, Compression, byte_sample, compressions",
        ),
        ("shoal.compat.serialising.compressing", "get_compression_settings, identity"),
        ("shoal.compat.serialising.memory", "ensure_memoryview, nbytes"),
    ),
    "distributed.protocol.core": _MESSAGES
    | _WRAPPERS
    | _COMPRESSION
    | _PICKLE
    | _MSGPACK
    | homes_of(
        ("shoal.compat.serialising.messages", "logger"),
        ("shoal.compat.serialising.memory", "msgpack_opts"),
    ),
    "distributed.protocol.cuda": _CUDA
    | homes_of(("shoal.compat.serialising.serialising", "cuda_dumps, cuda_loads")),
    "distributed.protocol.numpy": homes_of(
        ("shoal.protocol.families.arrays", "itemsize"),
        ("shoal.protocol.families.arrays", "from_array as serialize_numpy_ndarray"),
        ("shoal.protocol.families.arrays", "to_array as deserialize_numpy_ndarray"),
        ("shoal.protocol.families.arrays", "from_masked as serialize_numpy_maskedarray"),
        ("shoal.protocol.families.arrays", "to_masked as deserialize_numpy_maskedarray"),
    ),
    "distributed.protocol.pickle": homes_of(
        ("shoal.compat.pickling", "HIGHEST_PROTOCOL, dumps, loads")
    ),
    "distributed.protocol.serialize": _SERIALIZE
    | _PICKLE
    | homes_of(
        ("shoal.compat.serialising.messages", "nested_deserialize as _nested_deserialize"),
        (
            "shoal.compat.serialising.serialising",
            "_is_msgpack_serializable, check_dask_serializable, dask_dumps",
        ),
        (
            "shoal.compat.serialising.serialising",
            "dask_loads, families, msgpack_dumps, msgpack_loads",
        ),
        ("shoal.compat.serialising.serialising", "error_loads as serialization_error_loads"),
        (
            "shoal.compat.serialising.serialising",
            "pickle_family_dumps as pickle_dumps, to_value as pickle_loads",
        ),
        ("shoal.compat.serialising.splitting", "merge_and_deserialize, serialize_and_split"),
        ("shoal.protocol.families.registry", "register_serialization_lazy"),
        ("dask.sizeof", "sizeof"),
        ("dask.utils", "typename"),
    ),
    "distributed.protocol.utils": _FRAMES,
    "distributed.protocol.utils_test": homes_of(
        ("shoal.compat.serialising.hosts", "get_host_array")
    ),
    "distributed.sizeof": homes_of(
        ("shoal.compat.serialising.sizes", "logger, safe_sizeof"), ("dask.sizeof", "sizeof")
    ),
    "distributed.utils": homes_of(("shoal.compat.serialising.memory", "ensure_memoryview")),
}
"""Old module → the names that it has → the home of each."""
