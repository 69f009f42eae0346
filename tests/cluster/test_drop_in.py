"""The package `distributed` that leads to shoal: same objects, both ways, and clear refusals."""

import importlib
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import dask
import pytest

from shoal.compat import installing
from shoal.compat.paths import PATHS
from shoal.compat.shim import NotMapped
from tests.programs import DROP_IN, ROOT, printed_by


def run(script: str, path: Path = DROP_IN) -> str:
    """What a script prints in an interpreter of its own, where `path` comes first."""
    return printed_by("-c", script, path=(path,))


@pytest.mark.parametrize("module", sorted(PATHS))
def test_every_name_of_the_table_has_a_home(module: str) -> None:
    for name, home in PATHS[module].items():
        where, _, attribute = home.partition(":")
        found = importlib.import_module(where)
        assert not attribute or hasattr(found, attribute), f"{module}.{name}"


def test_the_modules_are_what_the_generator_writes() -> None:
    assert printed_by(str(ROOT / "tools" / "make_drop_in.py"), "--check") == ""


def test_names_are_the_very_objects_of_shoal_by_every_way() -> None:
    run(
        "import sys, shoal, distributed\n"
        "import dask.distributed\n"
        "from dask.distributed import Client, wait\n"
        "assert Client is distributed.Client is dask.distributed.Client is shoal.Client\n"
        "assert wait is shoal.wait\n"
        "import dask.distributed.client\n"
        "assert sys.modules['dask.distributed.client'] is sys.modules['distributed.client']\n"
        "assert dask.distributed.client.Future is shoal.Future\n"
        "namespace = {}\n"
        "exec('from distributed import *', namespace)\n"
        "assert namespace['LocalCluster'] is shoal.LocalCluster\n"
        "assert namespace['config'] is dask.config.config\n"
    )


def test_the_version_is_that_of_dask_and_made_of_numbers() -> None:
    version = run("import distributed; print(distributed.__version__)").strip()
    assert version == dask.__version__.partition("+")[0]
    assert all(part.isdigit() for part in version.split("."))


def test_modules_are_found_before_they_are_imported_and_by_those_who_walk() -> None:
    run(
        "import distributed, pkgutil\n"
        "assert distributed.comm.get_address_host('tcp://1.2.3.4:5') == '1.2.3.4'\n"
        "names = [m.name for m in pkgutil.walk_packages(distributed.__path__, 'distributed.')]\n"
        "from shoal.compat.paths import PATHS\n"
        "assert sorted(['distributed', *names]) == sorted(PATHS)\n"
        "assert set(distributed.__all__) <= set(dir(distributed))\n"
    )


def test_a_patch_through_an_old_name_has_its_effect_and_ends() -> None:
    run(
        "from unittest import mock\n"
        "import distributed.utils\n"
        "from shoal.compat import functions\n"
        "before = functions.open_port\n"
        "with mock.patch('distributed.utils.open_port', lambda: 5):\n"
        "    assert functions.open_port() == distributed.utils.open_port() == 5\n"
        "assert functions.open_port is distributed.utils.open_port is before\n"
        "distributed.utils.open_port = 6\n"
        "assert functions.open_port == 6\n"
        "del distributed.utils.open_port\n"
        "assert functions.open_port is before\n"
        "distributed.utils.of_my_own = 7\n"
        "assert distributed.utils.of_my_own == 7 and not hasattr(functions, 'of_my_own')\n"
        "del distributed.utils.of_my_own\n"
        "assert not hasattr(distributed.utils, 'of_my_own')\n"
    )


def test_importing_a_module_does_not_hide_a_name_or_harm_its_home() -> None:
    run(
        "import dask.config, distributed, distributed.config\n"
        "from distributed.config import get_loop_factory\n"
        "assert distributed.config is dask.config.config\n"
        "assert isinstance(dask.config.config, dict)\n"
        "import importlib, distributed.client\n"
        "assert importlib.reload(distributed.client).Client is distributed.Client\n"
    )


def test_pickles_of_old_paths_can_be_read() -> None:
    run(
        "import pickle, shoal\n"
        "assert pickle.loads(b'cdistributed.client\\nFuture\\n.') is shoal.Future\n"
    )


def test_what_is_not_there_is_refused_with_what_is() -> None:
    printed = run(
        "try:\n    import distributed.dashboard.core\n"
        "except ImportError as error:\n    print(error.name, error)\n"
        "try:\n    from distributed import Nany\n"
        "except ImportError as error:\n    print(error)\n"
    )
    assert "distributed.dashboard" in printed
    assert "distributed.deploy.local" not in printed  # only what is spelt like it is named
    assert "Nany" in printed
    printed = run(
        "try:\n    from dask.distributed import Nany\n"
        "except ImportError as error:\n    print(error)\n"
        "import distributed\n"
        "try:\n    distributed.Nany\n"
        "except AttributeError as error:\n    print(error)\n"
    )
    assert "This version of shoal has no `Nany`" in printed
    assert "Names like it in distributed: Nanny.\n" in printed
    assert "and this version of shoal has no `Nany`" in printed
    assert "No module named" not in printed
    error = pickle.loads(pickle.dumps(NotMapped("distributed.x")))
    assert error.name == "distributed.x"


def test_one_name_that_is_not_built_does_not_keep_a_program_from_starting() -> None:
    """By every way that upstream has; the same object, and of no effect until it is called."""
    printed = run(
        "from dask.distributed import Client, Event, Security, performance_report, progress\n"
        "import distributed, distributed.client, distributed.deploy, shoal\n"
        "assert Event is distributed.Event is shoal.Event\n"
        "assert distributed.client.performance_report is performance_report\n"
        "assert distributed.deploy.SpecCluster is shoal.SpecCluster\n"
        "try:\n    with performance_report('x.html'):\n        pass\n"
        "except ValueError as error:\n    print(error)\n"
    )
    assert printed.startswith("performance_report() is not supported by this version of shoal. ")


def test_dask_computes_with_the_client_whatever_the_package_is_called() -> None:
    script = (
        "import dask, os\n"
        "from {} import Client\n"
        "with Client(processes=False, n_workers=1) as client:\n"
        "    assert dask.delayed(sum)([1, 2]).compute() == 3\n"
        "    assert dask.base.get_scheduler() is not None\n"
    )
    run(script.format("distributed"))
    run(script.format("shoal"), ROOT / "src")


def test_dasks_ways_to_us_lead_to_the_very_same_objects() -> None:
    run(
        "import dask, dask.config, distributed\n"
        "import dask.distributed\n"
        "from dask.distributed.protocol import dumps\n"
        "from distributed.lock import Lock\n"
        "from distributed.worker import get_client\n"
        "from distributed.utils import iscoroutinefunction, import_term\n"
        "assert Lock is distributed.Lock is dask.distributed.Lock\n"
        "assert get_client is distributed.get_client\n"
        "assert import_term('distributed.lock.Lock') is Lock\n"
        "assert dask.config.get('distributed.comm.default-scheme') == 'tcp'\n"
        "from distributed import SchedulerPlugin\n"
        "class Mine(SchedulerPlugin):\n    name = 'mine'\n"
    )


def test_tasks_compute_with_the_cluster_that_they_are_part_of() -> None:
    printed = run(
        "import dask\n"
        "from distributed import Client, get_client, worker_client\n"
        "def inner(x):\n"
        "    assert dask.base.get_scheduler() == get_client().get\n"
        "    with worker_client() as client:\n"
        "        assert client is get_client()\n"
        "        return dask.delayed(sum)([x, client.submit(abs, -2).result()]).compute()\n"
        "with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as client:\n"
        "    print(client.gather(client.map(inner, range(4))))\n"
        "    print(client.run(lambda: dask.config.get('scheduler', None)).values())\n"
    )
    assert printed.splitlines() == ["[2, 3, 4, 5]", "dict_values([None, None])"]


def test_locks_that_dask_makes_by_default_are_the_clusters(tmp_path: Path) -> None:
    total = tmp_path / "total"
    total.write_text("0")
    run(
        "import dask.array as da, distributed\n"
        "from dask.utils import get_scheduler_lock\n"
        "from distributed import Client\n"
        "class Target:\n"
        "    def __init__(self, path):\n        self.path = path\n"
        "    def __setitem__(self, where, values):\n"
        "        with open(self.path) as file:\n            total = int(file.read())\n"
        "        with open(self.path, 'w') as file:\n"
        "            file.write(str(total + values[0]))\n"
        f"target = Target({str(total)!r})\n"
        "x = da.arange(30, chunks=1)\n"
        "with Client(n_workers=2, threads_per_worker=2, dashboard_address=None):\n"
        "    assert type(get_scheduler_lock(x)) is distributed.lock.Lock\n"
        "    da.store(x, target)\n"
    )
    assert total.read_text() == str(sum(range(30)))


def test_the_traceback_of_a_computation_is_that_of_the_users_code() -> None:
    printed = run(
        "import dask, sys, traceback\n"
        "from distributed import Client\n"
        "def divide(x):\n    return 1 / x\n"
        "with Client(processes=False, n_workers=1, dashboard_address=None) as client:\n"
        "    try:\n        dask.delayed(divide)(0).compute()\n"
        "    except ZeroDivisionError as error:\n"
        "        print([f.name for f in traceback.extract_tb(error.__traceback__)])\n"
    )
    assert printed.strip() == "['<module>', 'compute', 'compute', 'divide']"


def test_it_can_be_installed_and_its_metadata_say_whose_it_is(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", "70.1", reason="older ones need a package to make wheels")
    pytest.importorskip("pip")
    copy = shutil.copytree(ROOT / "drop-in", tmp_path / "drop-in")
    target = tmp_path / "site"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
    command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(target)]
    answer = subprocess.run(
        [*command, str(copy)], capture_output=True, text=True, timeout=60, check=False
    )
    assert answer.returncode == 0, answer.stderr
    printed = run(
        "import distributed, shoal\n"
        "from importlib.metadata import version, requires\n"
        "print(version('distributed'), requires('distributed'), distributed.__file__)\n"
        "assert distributed.Client is shoal.Client\n",
        target,
    )
    assert printed.startswith(
        f"{dask.__version__.partition('+')[0]}+shoal ['shoal', 'msgpack>=1.0'] {target}"
    )


def test_a_function_of_a_script_that_names_the_package_travels() -> None:
    run(
        "import distributed, cloudpickle, pickle\n"
        "def address():\n"
        "    return distributed.get_worker().address\n"
        "again = pickle.loads(cloudpickle.dumps(address))\n"
        "assert again.__globals__['distributed'] is distributed\n"
    )


def test_it_can_be_made_and_installed_without_its_sources(tmp_path: Path) -> None:
    pytest.importorskip("pip")
    installing.enable(tmp_path)
    printed = run(
        "import distributed, shoal\n"
        "from importlib.metadata import entry_points, version\n"
        "assert distributed.Client is shoal.Client\n"
        "print(version('distributed'), distributed.__file__)\n",
        tmp_path,
    )
    assert printed.startswith(f"{dask.__version__.partition('+')[0]}+shoal {tmp_path}")


def test_a_command_says_whose_the_name_is() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "shoal", "dropin", "status"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.startswith("`distributed` leads to shoal")
