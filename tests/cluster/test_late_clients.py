"""A client that a task asks for when its worker has begun to close does not outlive that."""

from shoal import LocalCluster
from shoal.client.nested import client_of_worker
from shoal.protocol.handshake import Keyring


class AClosingWorker:
    """As a task sees it, which has just called what was to be called before."""

    is_closing = True

    def __init__(self, cluster):
        self.scheduler_address = cluster.scheduler_address
        self.client_keyring = Keyring.from_token(cluster.token)
        self.before_close = []


class AWorker(AClosingWorker):
    is_closing = False


def test_a_client_of_a_closing_worker_is_closed_at_once_and_another_s_by_its_worker():
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as cluster:
        closing, working = AClosingWorker(cluster), AWorker(cluster)
        assert client_of_worker(closing).status == "closed"
        client = client_of_worker(working)
        assert client.status == "running"
        assert client.direct_to_workers
        for end in (*closing.before_close, *working.before_close, *working.before_close):
            end()  # once is enough, and twice does no harm
        assert client.status == "closed"
