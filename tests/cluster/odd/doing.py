"""Tasks that do to their process what others have to live with."""

import ctypes
import gc
import os
import re
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from typing import Any, NoReturn

from tests.cluster.odd.case import gives, raises


def is_done(value: Any) -> bool:
    return value == "done"


@gives(is_done)
def lowers_the_recursion_limit() -> Any:
    sys.setrecursionlimit(60)
    return "done"


@gives(is_done)
def prints_megabytes() -> Any:
    for _ in range(40):
        os.write(1, b"x" * 99_999 + b"\n")
    return "done"


@gives(is_done)
def closes_standard_output_and_error() -> Any:
    for descriptor in (1, 2):
        with suppress(OSError):  # closed by the run before this one
            os.close(descriptor)
    return "done"


@gives(is_done)
def closes_sys_stdout() -> Any:
    sys.stdout.close()
    return "done"


class Broken:
    def write(self, text: str) -> NoReturn:
        raise OSError("broken stream")

    flush = write


@gives(is_done)
def replaces_standard_output_and_error() -> Any:
    sys.stdout = sys.stderr = Broken()  # type: ignore[assignment]
    return "done"


@gives(is_done)
def goes_to_a_folder_that_vanishes() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
    return "done"


@gives(is_done)
def leaves_a_thread_behind() -> Any:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return "done"


@gives(is_done)
def exits_in_a_thread_of_its_own() -> Any:
    thread = threading.Thread(target=sys.exit, args=(3,))
    thread.start()
    thread.join()
    return "done"


@gives(is_done, once=True)
def holds_the_interpreter_for_two_seconds() -> Any:
    ctypes.PyDLL(None).usleep(2_000_000)
    return "done"


@raises(ValueError, "main thread")
def installs_a_signal_handler() -> Any:
    return signal.signal(signal.SIGTERM, signal.SIG_IGN)


@gives(is_done)
def blocks_signals() -> Any:
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    return "done"


@gives(is_done)
def replaces_the_clocks() -> Any:
    def broken() -> NoReturn:
        raise OSError("no time")

    time.time = broken
    return "done"


@gives(is_done)
def never_collects_garbage() -> Any:
    gc.disable()
    gc.callbacks.append(_refuse)
    gc.collect()
    gc.callbacks.remove(_refuse)
    return "done"


def _refuse(*_: object) -> NoReturn:
    raise RuntimeError("refused")


@raises(RuntimeError, "refused")
def leaves_a_broken_tracer() -> Any:
    sys.settrace(_refuse)
    return "done"


@raises(RuntimeError, "refused")
def leaves_a_broken_profiler() -> Any:
    sys.setprofile(_refuse)
    return "done"


class ExitsWhenFreed:
    def __del__(self) -> NoReturn:
        raise SystemExit(1)


@gives(is_done)
def frees_what_exits() -> Any:
    value: Any = ExitsWhenFreed()
    del value
    return "done"


@gives(is_done)
def forks_and_returns_twice() -> Any:
    os.fork()
    return "done"


@gives(is_done)
def changes_the_environment() -> Any:
    os.environ.clear()
    return "done"


@gives(is_done)
def forgets_all_modules_of_its_own() -> Any:
    for name in [name for name in sys.modules if re.match("tests|json", name)]:
        del sys.modules[name]
    return "done"


@gives(is_done)
def empties_the_import_path() -> Any:
    path = list(sys.path)
    sys.path.clear()
    sys.path.extend(path[1:])
    return "done"
