"""What all tests share: one BLAS thread (bits are compared), the slow sample, and the data folder."""

import os

# Before NumPy is imported, or it is too late.
for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

import colonnade.transports.grpc  # noqa: F401  # before a test imports gRPC's library, which reads what it sets
from colonnade.kernels.arrays import Floats
from postgres_trial import postgres_server

PROJECT = Path(__file__).parents[1]
BETWEEN_MACHINES = ("network", "equivalence")


# On a shared machine the time of one example means nothing. `--slow=all` looks for new examples; otherwise they are the
# same each time, so that what lands does not depend on luck.
settings.register_profile("the same", deadline=None, derandomize=True)
settings.register_profile("new ones", deadline=None)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slow", choices=["none", "sample", "all"], default="sample", help="which slow tests run")


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("new ones" if config.getoption("--slow") == "all" else "the same")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep one slow test a file in the sample; let tests between machines show rows, which is not what they test.

    One marked ``slow(sampled=False)`` is a larger form of a test that runs always, and in no sample.
    """
    wanted, seen = config.getoption("--slow"), set()
    for item in items:
        if item.path.parent.name in BETWEEN_MACHINES:
            item.add_marker(pytest.mark.filterwarnings("ignore::colonnade.DisclosureWarning"))
        slow = item.get_closest_marker("slow")
        if slow is None or wanted == "all":
            continue
        sampled = slow.kwargs.get("sampled", True)
        if wanted == "none" or not sampled or item.path in seen:
            item.add_marker(pytest.mark.skip(reason="slow: run with --slow=all"))
        if sampled:
            seen.add(item.path)


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Give the folder of real data sets, or skip."""
    folder = Path(os.environ.get("COLONNADE_DATA", PROJECT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the data sets are not here ({folder.name}); set COLONNADE_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """Give the address of a PostgreSQL, or skip."""
    with postgres_server() as address:
        yield address


@pytest.fixture(scope="session")
def kc_house(data_folder: Path) -> tuple[Floats, Floats]:
    """Give the 18 features and the price of KC House."""
    import pyarrow.parquet as pq

    table = pq.read_table(data_folder / "kc_house.parquet")
    columns = [table.column(i).to_numpy().astype(np.float64) for i in range(2, 21)]
    return np.column_stack(columns[1:]), columns[0]
