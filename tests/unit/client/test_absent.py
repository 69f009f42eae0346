"""What this version lacks is refused by name, and nothing that it has is."""

import pickle

import pytest

from shoal.client.absent import ABSENT, REMEDIES, Absent, AbsentMethod
from shoal.client.client import AsyncClient, Client
from shoal.deploy.local import LocalCluster


@pytest.mark.parametrize("face", [Client, AsyncClient])
def test_what_is_there_is_not_in_the_table(face):
    assert [name for name in ABSENT if name in dir(face)] == []
    assert issubclass(face, Absent)


def test_what_is_absent_is_named_with_what_to_do_and_hasattr_says_no():
    client = AsyncClient("tcp://127.0.0.1:1", set_as_default=False)
    assert not hasattr(client, "profile")
    with pytest.raises(
        AttributeError, match=r"does not have Client\.profile\. client\.call_stack\(\)"
    ) as caught:
        client.profile  # noqa: B018 -- asking is the test
    assert type(caught.value) is AbsentMethod
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.method, str(copy)) == ("profile", str(caught.value))
    with pytest.raises(AttributeError, match=r"^'AsyncClient' object has no attribute 'gathr'"):
        client.gathr  # noqa: B018 -- asking is the test


def test_a_cluster_refuses_in_the_same_way_by_its_own_name():
    cluster = LocalCluster(asynchronous=True)  # never awaited, so nothing was started
    assert [name for name in LocalCluster._absent if name in dir(LocalCluster)] == []
    assert not hasattr(cluster, "start_worker")
    lack = r"does not have Cluster\.start_worker\. .*cluster\.scale\(n\)"
    with pytest.raises(AbsentMethod, match=lack):
        cluster.start_worker()
    with pytest.raises(AttributeError, match=r"^'LocalCluster' object has no attribute 'adopt'"):
        cluster.adopt  # noqa: B018 -- asking is the test


def test_remedies_are_for_what_is_absent():
    assert set(REMEDIES) <= ABSENT
