"""A program as people write them, for `dying`: two worker processes, work that tells of its steps.

It prints, as lines of JSON, the process ids, then its result or the error that it got instead.
"""

import json
import os
import socket
import sys
import time
from collections.abc import Callable

NNUMBERS = 48
TASK_SECONDS = 0.01
RESULT = sum(n * n for n in range(NNUMBERS))
NSTEPS = 2 * NNUMBERS - 1
"""Tasks that tell; more if some are run twice."""


def tell(path: str) -> None:
    """One step more; nobody need listen."""
    time.sleep(TASK_SECONDS)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
        try:
            sock.sendto(b"!", path)
        except OSError:
            pass


def square(n: int, path: str) -> list[int]:
    """A result too large to travel with messages, so that workers must fetch it."""
    from shoal import get_worker

    tell(path)
    with open(os.path.join(get_worker().local_directory, f"square-{n}"), "w") as file:
        file.write("left behind unless somebody removes it")
    return [n * n] + [0] * 5000


def add(left: list[int], right: list[int], path: str) -> list[int]:
    """Their sum, large as well."""
    tell(path)
    return [left[0] + right[0]] + [0] * 5000


def work(path: str) -> int:
    """Start a cluster, and compute the sum of squares in a tree of small steps."""
    from shoal import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        pids = [worker.pid for worker in cluster.workers.values()]
        say({"scheduler": cluster.scheduler.pid, "workers": pids})
        level = [client.submit(square, n, path, pure=False) for n in range(NNUMBERS)]
        while len(level) > 1:
            rest = level[len(level) // 2 * 2 :]
            pairs = zip(level[::2], level[1::2], strict=False)
            level = [client.submit(add, a, b, path, pure=False) for a, b in pairs] + rest
        return level[0].result()[0]


def say(what: object) -> None:
    """Print it as one line."""
    print(json.dumps(what), flush=True)


def main(do: Callable[[str], object], path: str) -> int:
    """The exit code: 3 if the work ended with an error, 130 if somebody pressed Ctrl-C."""
    try:
        say({"result": do(path)})
    except KeyboardInterrupt:
        say({"error": "KeyboardInterrupt"})
        return 130
    except Exception as error:
        say({"error": f"{type(error).__name__}: {error}"})
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main(work, sys.argv[1]))
