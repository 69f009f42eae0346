"""What one simulated client does to the cluster as a whole: its workers, their memory, limits."""

from __future__ import annotations

from shoal.client.machine import ERROR, ClientMachine
from shoal.protocol.holding import RebalanceTasks, ReplicateTasks
from shoal.protocol.limits import SetLimits
from shoal.protocol.membership import RestartWorkers, RetireWorkers
from shoal.protocol.messages import Message
from shoal.sim.faults import worker_name
from shoal.sim.locking import Calls
from shoal.sim.plan import Rebalance, Replicate, Restart, RetireSome, Retry, SetLimit


class Members:
    """Retries, copies, retirements, restarts and limits; nothing is done with the answers."""

    def __init__(self, call: Calls, machine: ClientMachine) -> None:
        """`call`: how to ask the scheduler."""
        self._call = call
        self._machine = machine

    def do(self, act: Retry | Replicate | Rebalance | RetireSome | Restart | SetLimit) -> None:
        """Do what the script says."""
        if isinstance(act, Retry):
            failed = [r for r in self._machine.records.values() if r.status == ERROR]
            self._machine.retry(failed)
            return
        self._call(act, lambda request: self._message(act, request), lambda request, answer: None)

    def _message(
        self, act: Replicate | Rebalance | RetireSome | Restart | SetLimit, request: int
    ) -> Message:
        match act:
            case Replicate(_, _, every, ncopies):
                keys = list(self._machine.records)[::every]
                return ReplicateTasks(request, keys, ncopies)
            case Rebalance():
                return RebalanceTasks(request)
            case RetireSome(_, _, workers, patience_seconds):
                names = [worker_name(index) for index in workers]
                return RetireWorkers(request, names, patience_seconds=patience_seconds)
            case Restart(_, _, seconds):
                return RestartWorkers(request, timeout_seconds=seconds, lets_go=True)
            case SetLimit(_, _, nruns_max, name):
                return SetLimits(request, {name: nruns_max})
