"""Collections that are shuffled from peer to peer give what pandas and numpy give."""

from importlib.util import find_spec

import dask
import dask.array as da
import numpy as np
import pytest
from dask.graph_manipulation import bind, clone
from dask.utils import get_default_shuffle_method

from shoal import Client
from tests.marks import needs_name
from tests.programs import printed_by_script

pd = pytest.importorskip("pandas")
dd = pytest.importorskip("dask.dataframe")


@pytest.fixture(scope="module")
def client():
    """One cluster for all of them."""
    with Client(
        n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
    ) as client:
        yield client


TABLE = pd.DataFrame({"a": np.arange(300) % 17, "b": np.arange(300) * 0.5, "c": list("xyz") * 100})


def frame():
    return dd.from_pandas(TABLE, npartitions=5)


def same_rows(found, expected=TABLE):
    expected = expected.astype({"c": found.c.dtype})  # dask has its own type for strings
    by = list(expected.columns)
    found, expected = (part.sort_values(by).reset_index(drop=True) for part in (found, expected))
    pd.testing.assert_frame_equal(found, expected)


@needs_name
def test_a_shuffle_is_from_peer_to_peer_while_there_is_a_client(client):
    assert get_default_shuffle_method() == "p2p"
    graph = frame().shuffle("a").optimize().dask
    assert any("shuffle-barrier" in str(key) for key in graph)


@needs_name
def test_a_users_own_setting_stays():
    with (
        dask.config.set({"dataframe.shuffle.method": "tasks"}),
        Client(n_workers=1, processes=False, dashboard_address=None),
    ):
        graph = frame().shuffle("a").optimize().dask
    assert not any("shuffle-barrier" in str(key) for key in graph)


@needs_name
@pytest.mark.parametrize("said", [{}, {"shuffle_method": "p2p"}, {"shuffle": "p2p"}])
def test_rows_of_a_key_come_together_and_none_is_lost(client, said):
    parts = dask.compute(*frame().shuffle("a", **said).to_delayed())
    same_rows(pd.concat(parts))
    homes = [key for part in parts for key in part.a.unique()]
    assert len(homes) == len(set(homes)) == 17


def barriers_met_by(client):
    keys = client.run_on_scheduler(lambda dask_scheduler: [*map(str, dask_scheduler.tasks)])
    return sum("shuffle-barrier" in key for key in keys)


@needs_name
@pytest.mark.parametrize(
    ("said", "nbarriers"),
    [({}, 0), ({"shuffle": "p2p"}, 1), ({"shuffle_method": "p2p"}, 1), ({"shuffle": "tasks"}, 0)],
)
def test_where_tasks_are_the_setting_a_call_may_say_otherwise(client, said, nbarriers):
    with dask.config.set({"dataframe.shuffle.method": "tasks"}):
        kept = frame().shuffle("a", **said).persist()
        same_rows(kept.compute())
    assert barriers_met_by(client) == nbarriers


@needs_name
def test_a_call_may_say_that_tasks_are_the_way(client):
    kept = frame().shuffle("a", shuffle_method="tasks").persist()
    same_rows(kept.compute())
    assert barriers_met_by(client) == 0


@needs_name
def test_an_index_that_was_set_is_sorted(client):
    found = frame().set_index("b").compute()
    expected = TABLE.set_index("b").astype({"c": found.c.dtype})
    pd.testing.assert_frame_equal(found, expected)


@needs_name
@pytest.mark.parametrize("how", ["inner", "left", "right", "outer"])
def test_merges_are_those_of_pandas(client, how):
    other = pd.DataFrame({"a": np.arange(5, 25), "d": np.arange(20)})
    merged = frame().merge(dd.from_pandas(other, npartitions=3), on="a", how=how, broadcast=False)
    same_rows(merged.compute(), TABLE.merge(other, on="a", how=how))


@needs_name
def test_groups_become_a_bag(client):
    counts = frame().groupby("a").apply(len, meta=("n", int)).to_bag().compute()
    assert sorted(counts) == sorted(TABLE.groupby("a").size())


def with_nothing_in_one(number):
    rows = np.arange(10)
    return pd.DataFrame({"a": rows, "b": [None] * 10 if number == 1 else rows + number / 8})


@needs_name
def test_a_partition_whose_column_holds_nothing_is_shuffled_with_the_others(client):
    """Left to itself, pyarrow gives that column another type there."""
    made = dd.from_map(with_nothing_in_one, range(5))
    found = made.shuffle("a").compute().sort_values(["a", "b"]).reset_index(drop=True)
    assert len(found) == 50
    assert found.b.isna().sum() == 10
    assert found.b.sum() == sum(float((np.arange(10) + n / 8).sum()) for n in (0, 2, 3, 4))


@needs_name
def test_sums_that_dask_declares_too_narrow_do_not_overflow_later(client):
    """Its meta of a running sum of 32-bit numbers says 32 bits; pandas gives 64."""
    table = pd.DataFrame({"j": np.arange(60) % 7, "x": np.arange(60, dtype="i4")})
    frame = dd.from_pandas(table, 4)
    made = frame.assign(y=frame.x.cumsum()).shuffle("j")
    found = made.assign(z=made.y * 10_000_000).compute()
    assert found.z.sum() == table.x.cumsum().sum() * 10_000_000


@needs_name
def test_gaps_of_a_merge_may_be_filled_with_what_its_meta_does_not_say(client):
    left = pd.DataFrame({"k": range(20), "j": [i % 7 for i in range(20)]})
    right = pd.DataFrame({"k": range(10), "b": range(10)})
    merged = dd.from_pandas(left, 4).merge(dd.from_pandas(right, 2), on="k", how="left")
    merged["b"] = merged.b.fillna(merged.b.mean())
    found = merged.groupby("j").apply(lambda rows: rows.b.sum(), meta=("b", "f8")).compute()
    assert found.sort_index().tolist() == [11.5, 13.5, 15.5, 12.0, 13.0, 14.0, 10.5]
    clipped = dd.from_pandas(left, 4)
    clipped = clipped.assign(x=clipped.k.clip(0.5, 7.5)).set_index("j")
    assert clipped.x.sum().compute() == left.k.clip(0.5, 7.5).sum()


@needs_name
def test_what_was_persisted_is_used_and_shuffled_again(client):
    kept = frame().shuffle("a").persist()
    same_rows(kept.compute())
    same_rows(kept.shuffle("c").compute())


@needs_name
def test_collections_that_share_a_shuffle_are_computed_together(client):
    shuffled = frame().shuffle("a")
    total, largest = client.compute([shuffled.b.sum(), shuffled.a.max()])
    assert (total.result(30), largest.result(30)) == (TABLE.b.sum(), 16)


@needs_name
def test_one_partition_of_a_shuffle_is_all_that_is_made(client):
    shuffled = frame().shuffle("a")
    sizes = [len(shuffled.partitions[i].compute()) for i in range(shuffled.npartitions)]
    assert sum(sizes) == len(TABLE)


@needs_name
def test_a_frame_of_delayed_parts_of_a_shuffle(client):
    same_rows(dd.from_delayed(frame().shuffle("a").to_delayed()).compute())


@needs_name
def test_two_shuffles_one_after_the_other(client):
    same_rows(frame().shuffle("a").shuffle("c").compute())


CHANGES = {
    "rows to columns": ((20, 4), (5, 20)),
    "a part stays": (((5, 15), 20), ((5, 10, 5), 5)),
    "finer": ((20, 20), (3, 7)),
    "uneven": (((1, 18, 1), (7, 13)), ((10, 10), (1, 1, 18))),
}


@needs_name
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("fuse", [None, True, False])
def test_arrays_in_other_chunks_are_the_same_arrays(client, change, fuse):
    old, new = CHANGES[change]
    x = da.from_array(np.arange(400).reshape(20, 20), chunks=old)
    with dask.config.set({"optimization.fuse.active": fuse}):
        made = ((x + 1).rechunk(new, method="p2p") * 2).compute()
    np.testing.assert_array_equal(made, (np.arange(400).reshape(20, 20) + 1) * 2)


@needs_name
def test_arrays_are_rechunked_over_and_over(client):
    x = da.from_array(np.arange(60).reshape(3, 4, 5), chunks=1)
    y = x.rechunk((3, 1, 1), method="p2p").rechunk((1, 4, 1), method="p2p")
    np.testing.assert_array_equal(y.rechunk((1, 1, 5), method="p2p").compute(), x.compute())


@needs_name
def test_copies_of_a_rechunked_array_do_not_disturb_each_other(client):
    x = da.from_array(np.arange(36).reshape(6, 6), chunks=(6, 1))
    y = x.rechunk((1, 6), method="p2p")
    copies = dask.compute(y, clone(y), bind(y, x.sum()), clone(y, omit=x))
    for copy in copies:
        np.testing.assert_array_equal(copy, np.arange(36).reshape(6, 6))


@needs_name
def test_without_a_cluster_a_shuffle_says_what_it_needs():
    with pytest.raises(RuntimeError, match="requires the distributed scheduler"):
        da.ones((6, 6), chunks=(6, 1)).rechunk((1, 6), method="p2p").compute(scheduler="sync")


@needs_name
def test_the_error_of_a_task_before_a_shuffle_is_the_users(client):
    def fails(part):
        raise ZeroDivisionError("in the middle")

    broken = frame().map_partitions(fails, meta=frame()._meta).shuffle("a")
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        broken.compute()


PROGRAM = """
import dask.array as da
import numpy as np
from shoal import Client

if __name__ == "__main__":
    def one(block):  # which no worker can import
        return block + 1

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:
        x = da.from_array(np.arange(400).reshape(20, 20), chunks=(20, 2)).map_blocks(one)
        print((x.rechunk((2, 20), method="p2p").sum()).compute())
"""


@needs_name
def test_processes_exchange_shards(tmp_path):
    assert printed_by_script(PROGRAM, tmp_path).split() == [str(400 * 399 // 2 + 400)]


NAMELESS = """
import sys

class Hidden:
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "distributed":
            raise ModuleNotFoundError("No module named 'distributed'", name="distributed")

sys.meta_path.insert(0, Hidden)

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from shoal import Client

table = pd.DataFrame({"a": np.arange(300) % 17, "b": np.arange(300) * 0.5})
frame = dd.from_pandas(table, npartitions=5)
with Client(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None) as client:
    kept = [frame.shuffle("a").persist(), frame.shuffle("a").shuffle("b").persist()]
    print([len(part.compute()) for part in kept])
    keys = client.run_on_scheduler(lambda dask_scheduler: [*map(str, dask_scheduler.tasks)])
    print(any("shuffle-barrier" in key for key in keys))
    del kept
    kept = frame.shuffle("b", shuffle="tasks").persist()
    keys = client.run_on_scheduler(lambda dask_scheduler: [*map(str, dask_scheduler.tasks)])
    print(len(kept.compute()), any("shuffle-barrier" in key for key in keys))
    merged = frame.merge(frame, on="a").compute()
    print(len(merged) == len(table.merge(table, on="a")))
    print(frame.groupby("a").apply(len, meta=("n", int)).compute().sum())
"""


@pytest.mark.skipif(not find_spec("pyarrow"), reason="shards of tables are sent by pyarrow")
def test_without_the_name_distributed_dataframes_are_shuffled_from_peer_to_peer_too(tmp_path):
    printed = printed_by_script(NAMELESS, tmp_path).split("\n")
    assert printed == ["[300, 300]", "True", "300 False", "True", "300", ""]
