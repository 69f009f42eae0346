"""Bodies of tasks that do to their process what faults do; importable where workers run."""

import ctypes
import os
import socket
import time


def hold_interpreter(seconds: float) -> str:
    """Native code that never lets another thread run."""
    ctypes.PyDLL(None).usleep(int(seconds * 1e6))
    return "done"


def tell(path: str, words: str) -> None:
    """Send `words` to whoever listens at a datagram socket; nobody need."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as sock:
        try:
            sock.sendto(words.encode(), path)
        except OSError:
            return


def begun(path: str, seconds: float, value: object = "done") -> object:
    """Tell who runs it, then take a while."""
    tell(path, str(os.getpid()))
    time.sleep(seconds)
    return value


def numbered(number: int, path: str, nbytes: int = 5_000) -> bytes:
    """A result that does not travel with messages; a line in the file each time it is made."""
    with open(path, "a") as file:
        file.write(f"{number}\n")
    return number.to_bytes(4, "big") + bytes(nbytes)


def number_of(value: bytes) -> int:
    """Of what `numbered` has made."""
    return int.from_bytes(value[:4], "big")


def sum_of_numbers(*values: bytes) -> int:
    """Needs all of them."""
    return sum(map(number_of, values))


def read_whole(path: str) -> str:
    """What somebody writes into a named pipe, once somebody does."""
    with open(path) as file:
        return file.read()


def noted(word: str, path: str) -> None:
    """A line in the file."""
    with open(path, "a") as file:
        file.write(f"{word}\n")
