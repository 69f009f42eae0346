"""The stages in the life of a service or a cluster."""

from enum import StrEnum


class Status(StrEnum):
    """What a service is doing; equal to its name as a text, too, which programs compare with."""

    undefined = "undefined"
    created = "created"
    init = "init"
    starting = "starting"
    running = "running"
    paused = "paused"
    stopping = "stopping"
    stopped = "stopped"
    closing = "closing"
    closing_gracefully = "closing_gracefully"
    closed = "closed"
    failed = "failed"
    dont_reply = "dont_reply"
