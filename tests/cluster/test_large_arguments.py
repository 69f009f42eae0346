"""Large arguments of calls are warned of where the user wrote the call, however many there are."""

import pytest

from shoal import Client
from shoal.client.errors import LargeGraphWarning


@pytest.mark.parametrize(
    ("call", "ntasks"),
    [
        (lambda client: client.submit(len, bytes(12_000_000)), "1 task:"),
        (lambda client: client.map(len, [bytes(12_000_000)]), "1 task:"),
        (lambda client: client.map(len, [bytes(4_000_000 + i) for i in range(4)]), "4 tasks:"),
    ],
)
def test_submit_and_map_warn_alike_at_the_call(call, ntasks):
    with Client(n_workers=1, processes=False, dashboard_address=None) as client:
        with pytest.warns(LargeGraphWarning, match=f"Sending large graph .* for {ntasks}") as told:
            call(client)
        assert [warning.filename for warning in told] == [__file__]
