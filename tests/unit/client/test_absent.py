"""What this version lacks is refused by name, and nothing that it has is."""

import pickle

import pytest

from shoal.client.absent import ABSENT, REMEDIES, Absent, AbsentMethod
from shoal.client.client import AsyncClient, Client


@pytest.mark.parametrize("face", [Client, AsyncClient])
def test_what_is_there_is_not_in_the_table(face):
    assert [name for name in ABSENT if name in dir(face)] == []
    assert issubclass(face, Absent)


def test_what_is_absent_is_named_with_what_to_do_and_hasattr_says_no():
    client = AsyncClient("tcp://127.0.0.1:1", set_as_default=False)
    assert not hasattr(client, "restart")
    with pytest.raises(
        AttributeError, match=r"does not have Client\.restart\. Make a new"
    ) as caught:
        client.restart()
    assert type(caught.value) is AbsentMethod
    copy = pickle.loads(pickle.dumps(AbsentMethod("profile")))
    assert (copy.method, str(copy)) == ("profile", str(AbsentMethod("profile")))
    with pytest.raises(AttributeError, match=r"^'AsyncClient' object has no attribute 'gathr'"):
        client.gathr  # noqa: B018 -- asking is the test


def test_remedies_are_for_what_is_absent():
    assert set(REMEDIES) <= ABSENT
