"""What the processes of these tests do: `main` is all that they run of ours."""

import json
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import uuid
from multiprocessing import current_process
from pathlib import Path
from typing import Any


def main(document: dict[str, Any]) -> None:
    """Do the deed that the document names, then wait until the owner lets go."""
    with socket.socket(fileno=os.dup(0)) as channel, channel.makefile("r") as lines:
        words = DEEDS[document["deed"]](document)
        tell(channel, {"address": "here", **words})
        for line in lines:
            answer = DEEDS[json.loads(line)["deed"]](document)
            tell(channel, {"left": "it was asked to", **answer})


def tell(channel: socket.socket, words: dict[str, Any]) -> None:
    """To the owner, if it is still there."""
    try:
        channel.sendall(json.dumps(words).encode() + b"\n")
    except OSError:
        pass


def rest(document: dict[str, Any]) -> dict[str, Any]:
    """Nothing."""
    return {}


def describe(document: dict[str, Any]) -> dict[str, Any]:
    """All that a process has from the one that started it."""
    umask = os.umask(0)
    os.umask(umask)
    descriptors = [int(name) for name in os.listdir("/proc/self/fd")]
    return {
        "environ": dict(os.environ),
        "directory": os.getcwd(),
        "umask": umask,
        "path": sys.path,
        "argv": sys.argv,
        "main": sorted(sys.modules["__main__"].__dict__),
        "group": os.getpgid(0),
        "nthreads": threading.active_count(),
        "descriptors": {n: where for n in descriptors if (where := target(n)) is not None},
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "child_signal": signal.getsignal(signal.SIGCHLD) == signal.SIG_DFL,
        "numpy": "numpy" in sys.modules,
    }


def target(descriptor: int) -> str | None:
    """What it is; None: it was the listing's own."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return None


def draw(document: dict[str, Any]) -> dict[str, Any]:
    """What must differ between processes, and what must not."""
    return {
        "random": random.random(),
        "uuid": str(uuid.uuid4()),
        "folder": next(tempfile._get_candidate_names()),  # type: ignore[attr-defined]
        "key": current_process().authkey.hex(),
        "hash": hash("text"),
    }


def print_and_rest(document: dict[str, Any]) -> dict[str, Any]:
    """To stdout and to stderr."""
    print("to stdout", flush=True)
    os.dup2(document["stderr"], 2)
    print("to stderr", file=sys.stderr)
    return {}


def exit_(document: dict[str, Any]) -> dict[str, Any]:
    """With a code, and last words."""
    print("line one\nlast words", file=sys.stderr)
    raise SystemExit(3)


def crash(document: dict[str, Any]) -> dict[str, Any]:
    """As native code does."""
    os.kill(os.getpid(), signal.SIGSEGV)
    return {}


def fill(document: dict[str, Any]) -> dict[str, Any]:
    """More memory than it may have."""
    filled = [bytearray(b"x" * 2**20) for _ in range(256)]
    if document.get("stays"):
        threading.Event().wait(30)
    return {"nmegabytes": len(filled)}


def stay(document: dict[str, Any]) -> dict[str, Any]:
    """Whatever happens to the owner."""
    Path(document["marks"]).write_text(str(os.getpid()))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    threading.Event().wait(60)
    return {}


DEEDS = {
    "rest": rest,
    "describe": describe,
    "draw": draw,
    "print": print_and_rest,
    "exit": exit_,
    "crash": crash,
    "fill": fill,
    "stay": stay,
}
