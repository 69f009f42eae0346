"""Getting what is not here: which peer to ask for what, and what to do when it doesn't come."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.ids import Key, RunId, TaskId
from shoal.ordered import OrderedSet
from shoal.protocol.messages import (
    Failure,
    Input,
    InputsUnavailable,
    ReplicasGone,
    TaskFailed,
)
from shoal.worker.machine.effects import Fetch, LoadInline
from shoal.worker.machine.forgetting import abandon, let_go, remove_run
from shoal.worker.machine.letting_in import fits, room_bytes
from shoal.worker.machine.residing import replace, settle
from shoal.worker.machine.state import WorkerState
from shoal.worker.model import words
from shoal.worker.model.entities import ELSEWHERE, Peer, Replica, Run, Want


def require(state: WorkerState, run: Run, item: Input) -> bool:
    """Have `run` wait for `item`, which is not held here; False if there is nowhere to get it."""
    want = _want(state, item)
    if want is None:
        return False
    want.freed = False
    want.waiters.add(run)
    if run.wants is None:
        run.wants = OrderedSet()
    run.wants.add(want)
    return True


def acquire(state: WorkerState, items: Iterable[Input]) -> None:
    """Get copies of these and keep them.  Cost: O(items)."""
    inline: list[Input] = []
    lacking: list[TaskId] = []
    for item in items:
        replica = state.held.get(item.task)
        if replica is not None:
            if replica.freed:
                revive(state, replica)
        elif item.value is not None:
            inline.append(item)
        else:
            want = _want(state, item)
            if want is None:
                lacking.append(item.task)
            else:
                want.acquire = True
                want.freed = False
    if inline:
        state.effects.append(LoadInline(inline))
    if lacking:
        state.outbox.append(ReplicasGone(lacking))


def revive(state: WorkerState, replica: Replica) -> None:
    """A freed replica that is still here is asked for again: as good as fetched, and told so."""
    replica.freed = False
    state.added.append(replica)
    state.record(replica.key, "freed, but asked for again")


def keep(
    state: WorkerState, task: TaskId, key: Key, nbytes: int, run: RunId = ELSEWHERE
) -> Replica:
    """Its value is here now: enter it, and serve those that wait for it.

    A want for it that is still under way stays, without waiters, until the peer has answered.
    """
    replica = state.held.get(task)
    if replica is None:
        replica = state.held[task] = Replica(task, key, nbytes, run)
        if nbytes >= state.settings.writable_nbytes_min:
            settle(state, replica)
    else:
        replica.nbytes, replica.run, replica.freed = nbytes, run, False
        replace(state, replica)
    settle_want(state, replica)
    return replica


def settle_want(state: WorkerState, replica: Replica) -> None:
    """What was to be fetched, if it was, is here: those that wait for it have it."""
    want = state.wants.get(replica.task)
    if want is not None:
        _serve(state, want, replica)
        want.acquire = False
        abandon(state, want)


def on_arrived(
    state: WorkerState,
    fetch: Fetch,
    arrived: Iterable[tuple[TaskId, int]],
    failed: Iterable[tuple[TaskId, Failure]],
) -> list[TaskId]:
    """A peer has answered; what it gave no answer for, it lacks.  Returns what to keep."""
    wants = _close_request(state, fetch)
    kept: list[TaskId] = []
    if wants is None:
        return kept
    open_wants = {want.task: want for want in wants}
    for task, nbytes in arrived:
        want = open_wants.pop(task, None)
        if want is not None and _arrive(state, want, nbytes):
            kept.append(task)
    for task, failure in failed:
        want = open_wants.pop(task, None)
        if want is not None and state.wants.get(task) is want:
            _fail(state, want, failure)
    for want in open_wants.values():
        if state.wants.get(want.task) is want:  # not given up with a run that failed just now
            state.record(want.key, f"{fetch.peer} lacks it")
            _next_holder(state, want)
    return kept


def on_unreachable(state: WorkerState, fetch: Fetch) -> None:
    """A peer could not be reached, or broke off; nothing else is asked of it for now."""
    wants = _close_request(state, fetch)
    if wants is None:
        return
    peer = state.peers.get(fetch.peer)
    if peer is not None:
        for want in peer.queue:
            want.peer = None
            wants.append(want)
        peer.queue.clear()
        peer.queued_nbytes = 0
        state.starved.discard(peer)
        if not peer.nrequests:
            del state.peers[peer.address]
    for want in wants:
        if state.wants.get(want.task) is not want:
            continue  # given up with a run that ended just now
        state.record(want.key, f"{fetch.peer} can't be reached")
        want.unreachable.append(fetch.peer)
        if fetch.peer in want.holders:
            want.holders.remove(fetch.peer)
        _next_holder(state, want)


def request(state: WorkerState) -> None:
    """Ask peers, as far as the limits allow.  Called once at the end of a step."""
    for want in state.unqueued:
        if want.peer is None and state.wants.get(want.task) is want:
            _queue(state, want)
    state.unqueued.clear()
    settings = state.settings
    while state.starved and len(state.fetches) < settings.transfers_max and has_room(state):
        peer = state.starved.first()
        first = peer.queue.first()
        if not fits(state, first.nbytes, first.waiters.first() if first.waiters else None):
            return
        state.starved.remove(peer)
        wants: list[Want] = []
        nbytes = 0
        most = min(
            settings.transfer_bytes_max,
            settings.incoming_bytes_max - state.incoming_nbytes,
            room_bytes(state),
        )
        for want in peer.queue:
            nbytes += want.nbytes
            if wants and (nbytes > most or len(wants) >= settings.transfer_tasks_max):
                nbytes -= want.nbytes
                break
            wants.append(want)
        for want in wants:
            want.in_flight = True
            del peer.queue[want]
        peer.queued_nbytes -= nbytes
        peer.nrequests += 1
        fetch = Fetch(peer.address, [want.task for want in wants], nbytes)
        state.fetches[fetch] = wants
        state.incoming_nbytes += nbytes
        state.effects.append(fetch)
        if peer.queue and peer.nrequests < settings.transfers_per_peer_max:
            state.starved.add(peer)


def has_room(state: WorkerState) -> bool:
    """Whether more may be asked for, besides what is on its way; something always may."""
    return not state.fetches or state.incoming_nbytes < state.settings.incoming_bytes_max


def _want(state: WorkerState, item: Input) -> Want | None:
    """The want of `item`, old or new, its holders added; None if there is nowhere to get it."""
    own_address = state.settings.address
    want = state.wants.get(item.task)
    if want is None:
        holders = [holder for holder in item.holders if holder != own_address]
        if not holders:
            return None
        want = state.wants[item.task] = Want(item.task, item.key, item.nbytes)
        want.holders = holders
        state.unqueued.append(want)
        return want
    current = want.peer.address if want.peer is not None else own_address
    for holder in item.holders:
        if holder not in want.holders and holder != current and holder != own_address:
            want.holders.append(holder)
    return want


def _queue(state: WorkerState, want: Want) -> None:
    """Choose whom to ask: the nearest holder, but rather one whom we are talking to anyway."""
    chosen = want.holders[0]
    for holder in want.holders:
        peer = state.peers.get(holder)
        if peer is not None and peer.queued_nbytes < state.settings.transfer_bytes_max:
            chosen = holder
            break
    want.holders.remove(chosen)
    peer = state.peers.get(chosen)
    if peer is None:
        peer = state.peers[chosen] = Peer(chosen)
    peer.queue.add(want)
    peer.queued_nbytes += want.nbytes
    want.peer = peer
    if peer.nrequests < state.settings.transfers_per_peer_max:
        state.starved.add(peer)


def _close_request(state: WorkerState, fetch: Fetch) -> list[Want] | None:
    """The wants that `fetch` was about; None if it is of another epoch."""
    wants = state.fetches.pop(fetch, None)
    if wants is None:
        return None
    state.incoming_nbytes -= fetch.nbytes
    peer = state.peers[fetch.peer]
    peer.nrequests -= 1
    for want in wants:
        want.peer = None
        want.in_flight = False
    if peer.queue:
        state.starved.add(peer)
    elif not peer.nrequests:
        del state.peers[peer.address]
    return wants


def _arrive(state: WorkerState, want: Want, nbytes: int) -> bool:
    """Enter an arrived value; False if nobody wants it any more, or it is here already."""
    del state.wants[want.task]
    if want.task in state.held:
        return False  # computed here in the meantime
    if not want.waiters and not want.acquire:
        state.record(want.key, "arrived, but nobody wants it")
        return False
    replica = state.held[want.task] = Replica(want.task, want.key, nbytes)
    if nbytes >= state.settings.writable_nbytes_min:
        settle(state, replica)
    if want.freed:
        replica.freed = True  # for its waiters only
    else:
        state.added.append(replica)
    state.record(want.key, words.ARRIVED)
    _serve(state, want, replica)
    return True


def _serve(state: WorkerState, want: Want, replica: Replica) -> None:
    for run in want.waiters:
        run.pins.append(replica)
        replica.npins += 1
        wants = run.wants
        if wants is not None:
            wants.discard(want)
            if not wants:
                run.wants = None
                if run.unread is None:
                    state.ready.append(run)
    want.waiters.clear()


def _next_holder(state: WorkerState, want: Want) -> None:
    """Try elsewhere, if anybody still wants it and there is an elsewhere."""
    if not want.waiters and not want.acquire:
        abandon(state, want)
    elif want.holders:
        state.unqueued.append(want)
    else:
        del state.wants[want.task]
        state.record(want.key, "no holder gave it")
        if want.acquire:
            state.outbox.append(ReplicasGone([want.task]))
        for run in list(want.waiters):
            end_unavailable(state, run, [want.task], list(want.unreachable))


def end_unavailable(
    state: WorkerState, run: Run, missing: list[TaskId], unreachable: list[str]
) -> None:
    """The run can't start here; it is over."""
    state.outbox.append(InputsUnavailable(run.task, run.number, missing, unreachable))
    state.record(run.key, words.UNAVAILABLE, run.number)
    remove_run(state, run)
    _detach(run, missing)
    let_go(state, run)


def _fail(state: WorkerState, want: Want, failure: Failure) -> None:
    """Its holder could not send it, or it can't be read here: what needs it can run there alone."""
    del state.wants[want.task]
    state.record(want.key, "could not be transferred")
    if want.acquire:
        state.outbox.append(ReplicasGone([want.task]))
    for run in list(want.waiters):
        state.outbox.append(TaskFailed(run.task, run.number, failure, 0.0, [want.task]))
        state.record(run.key, words.NOT_TRANSFERRED, run.number)
        remove_run(state, run)
        _detach(run, [want.task])
        let_go(state, run)


def _detach(run: Run, gone: list[TaskId]) -> None:
    """Forget its wants that are out of the tables already."""
    if run.wants is not None:
        for want in list(run.wants):
            if want.task in gone:
                run.wants.discard(want)
                want.waiters.discard(run)
