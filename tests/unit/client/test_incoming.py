"""What the scheduler says is heard in one place, and what few clients use is made when it is."""

from shoal.client.coordination.named import Claims
from shoal.client.incoming import INCOMING, CallsUnderWay
from shoal.client.machine import ClientMachine
from shoal.client.session import Session
from shoal.protocol.actors import ActorsLost
from shoal.protocol.directions import SUBJECTS
from tests.house.messages import snake


def test_each_message_has_a_row_or_is_the_machines_and_never_both():
    kinds = [kind for subject in SUBJECTS for kind in subject.to_client]
    assert len(kinds) > len(INCOMING)
    for kind in kinds:
        machines = hasattr(ClientMachine, f"on_{snake(kind.__name__)}")
        assert machines != (kind in INCOMING), kind


def test_a_client_that_has_called_no_actor_is_not_concerned_by_lost_ones():
    """And one that has forgets the worker, whose connection may live on."""
    session, forgotten = Session("a"), []
    lost = ActorsLost("tcp://a:1", "it was silent")
    INCOMING[ActorsLost](session, lost, [])
    session.state_of(CallsUnderWay).forget = lambda *said: forgotten.append(said)
    INCOMING[ActorsLost](session, lost, [])
    assert forgotten == [("tcp://a:1", "it was silent")]


def test_state_of_a_session_is_made_once_for_each_session():
    session, other = Session("a"), Session("b")
    assert session.state_of(Claims) is session.state_of(Claims)
    assert session.state_of(Claims) is not other.state_of(Claims)
    assert [session.state_of(Claims).new() for _ in range(2)] == [1, 2]
    assert other.state_of(Claims).new() == 1
