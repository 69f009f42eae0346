"""What is true of a client's machine after every event; each broken one is a sentence."""

from collections.abc import Iterator

from shoal.client.machine.record import (
    CANCELLED,
    ERROR,
    FINISHED,
    LOST,
    STATUSES,
    UNRESOLVED,
    Record,
)
from shoal.client.machine.wants import ClientMachine


def check(machine: ClientMachine) -> Iterator[str]:
    """Sentences for what must never be true; none if all is well.  Cost: O(records)."""
    for key, record in machine.records.items():
        if record.key != key:
            yield f"{record!r} is filed under {key!r}"
        if record.nfutures < 1:
            yield f"{record!r} is wanted by no future"
        if record.status == CANCELLED:
            yield f"{record!r} could be shared by a new future, though it is cancelled"
        if machine.by_number.get(record.number) is not record:
            yield f"{record!r} is live, but an answer would not find it"
    for number, record in machine.by_number.items():
        if record.number != number:
            yield f"{record!r} is filed under number {number}"
        if number >= machine._next_number:
            yield f"{record!r} has a number that was not given out yet"
        if machine.records.get(record.key) is not record:
            yield f"{record!r} is awaited, but a new future of its key would not share it"
        yield from _check_record(record)
    yield from _check_way_back(machine)


def _check_record(record: Record) -> Iterator[str]:
    """Sentences for what must never be true of one record."""
    if record.status not in STATUSES:
        yield f"{record!r} has no such status"
    if record.status in UNRESOLVED and (record.value is not None or record.failure is not None):
        yield f"{record!r} is unresolved, yet has an outcome"
    if (record.status == ERROR) != (record.failure is not None):
        yield f"{record!r}: error and failure do not go together"
    if record.status == LOST and record.holders:
        yield f"{record!r} is lost, but has holders"


def _check_way_back(machine: ClientMachine) -> Iterator[str]:
    """Sentences for what must never be true as the scheduler may be lost, or was."""
    for record in machine.by_number.values():
        if record.status == FINISHED and record.value is None:
            if (record.task < 0) != (record.number in machine.astray):
                yield f"{record!r} is finished, but nobody can be asked for its value"
        elif record.number in machine.astray:
            yield f"{record!r} is astray, and yet not elsewhere"
    for record in (*machine.astray.values(), *machine.unsaid.values()):
        if machine.by_number.get(record.number) is not record:
            yield f"{record!r} is wanted by nobody, and still looked for"
    for record in machine.unsaid.values():
        if record.status != ERROR:
            yield f"{record!r} has not failed, and was not said again"
    if machine.lineage is not None and machine._batch is None:
        covered = dict.fromkeys(machine.lineage.covers())
        for record in machine.by_number.values():
            if record.number not in covered:
                yield f"{record!r} could not be said to another scheduler"
