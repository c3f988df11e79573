"""Work on blocks can be sent to other machines, whatever it is; tables are cut for that into pieces."""

import pickle
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import colonnade as cn
from colonnade.data.engines import Readable
from colonnade.data.streams import PIECE_ROWS, open_rows
from colonnade.evaluation.linear import products
from colonnade.evaluation.windows import _fill, _Room
from colonnade.kernels.arrays import Floats
from colonnade.kernels.blocks import BLOCK_ROWS, Block, Work

R = TypeVar("R")
N_ROWS = 2 * BLOCK_ROWS + 100


@dataclass(frozen=True)
class ByPost:
    """Does everything here, but has all of it pickled on the way, to and fro: the least that a cluster asks for."""

    def map(self, work: Work[R], rows: Readable, numbers: Sequence[int] | None = None) -> Iterator[R]:
        sent = pickle.dumps((work, rows))
        for piece in rows.pieces(numbers):
            there: tuple[Work[R], Readable] = pickle.loads(sent)  # noqa: S301  # our own
            for block in there[1].seen_from_here().blocks(piece):
                yield pickle.loads(pickle.dumps(there[0](block)))  # noqa: S301


def write(path: Path, values: Floats, row_group_size: int = 10_000) -> Path:
    names = [f"{path.stem}_{place}" for place in range(values.shape[1])]
    pq.write_table(pa.table(dict(zip(names, values.T, strict=True))), path, row_group_size=row_group_size)
    return path


@pytest.fixture(scope="module")
def federations(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    """Make two federations of the same tables, one of which works by post; labels are classes 0 and 1."""
    folder, rng = tmp_path_factory.mktemp("tables"), np.random.default_rng(5)
    X = rng.normal(size=(N_ROWS, 6)) + 10 * rng.integers(4, size=(N_ROWS, 1))
    y = X[:, :1] @ np.array([[0.3]]) + rng.normal(size=(N_ROWS, 1)) > 5
    bank, shop = write(folder / "bank.parquet", np.hstack([X[:, :3], y])), write(folder / "shop.parquet", X[:, 3:])

    def federation(engine: Any) -> cn.Federation:
        return cn.Federation(
            [cn.Party("bank", bank, label="bank_3", engine=engine), cn.Party("shop", shop, engine=engine)]
        )

    return federation(None), federation(ByPost())


REGRESSION, CLASSES, CLUSTERS = cn.Regression(l2=0.1, standardize=True), cn.Classification(l2=0.1), cn.KMeans(3)


@pytest.mark.parametrize(
    ("task", "sampler", "solver", "options"),
    [
        (REGRESSION, cn.ImportanceSampling(200), cn.Central(), {"split": cn.HoldOut(0.2)}),
        (REGRESSION, cn.ImportanceSampling(200, draws="distinct", round_scores=True), cn.CompactCentral(), {}),
        (REGRESSION, cn.ImportanceSampling(200, draws="independent"), cn.Central(), {}),
        (REGRESSION, cn.ImportanceSampling(200, sharpened=True, totals="set"), cn.Central(), {}),
        (REGRESSION, cn.ImportanceSampling(200, draws="committed"), cn.Central(), {}),
        (REGRESSION, cn.UniformSampling(200), cn.Central(), {"split": cn.HoldOut(0.2)}),
        (REGRESSION, cn.AllRows(), cn.SecureGram(allow_two_parties=True), {}),
        (CLASSES, cn.ImportanceSampling(200), cn.Central(), {}),
        (CLUSTERS, cn.ImportanceSampling(200), cn.Central(), {}),
        (CLUSTERS, cn.ImportanceSampling(200), cn.DistDim(), {}),
        (CLUSTERS, cn.ImportanceSampling(200), cn.SecureLloyd(allow_two_parties=True), {}),
    ],
)
@pytest.mark.filterwarnings("ignore::colonnade.ConvergenceWarning", "ignore::colonnade.AssumptionWarning")
def test_all_work_can_be_sent_and_gives_the_same_bits(
    federations: tuple[cn.Federation, cn.Federation], task: Any, sampler: Any, solver: Any, options: dict[str, Any]
) -> None:
    here, by_post = (each.fit(task, sampler=sampler, solver=solver, seed=3, **options) for each in federations)
    assert bits(here) == bits(by_post)
    assert repr(federations[0].evaluate(here.model)) == repr(federations[1].evaluate(here.model))
    few = np.array([N_ROWS - 1, 0, 3])
    np.testing.assert_array_equal(*(each.predict(here.model, rows=few) for each in federations))


def test_so_can_that_of_plans_and_certificates(federations: tuple[cn.Federation, cn.Federation]) -> None:
    plans = [each.plan(REGRESSION, target_excess=0.1, seed=3) for each in federations]
    assert repr(plans[0].frontier) == repr(plans[1].frontier)
    runs = [each.fit(REGRESSION, sampler=cn.ImportanceSampling(200), seed=3) for each in federations]
    certificates = [each.certify(run, seed=4) for each, run in zip(federations, runs, strict=True)]
    assert repr(certificates[0]) == repr(certificates[1])


def bits(run: Any) -> tuple[bytes, ...]:
    arrays = [run.coreset.rows, run.coreset.weights]
    model = run.model
    arrays += [model.cluster_centers_] if isinstance(model, cn.KMeansModel) else [model.coef_, model.intercept_]
    return tuple(np.asarray(array).tobytes() for array in arrays)


def test_so_can_that_of_certificates_of_classes(federations: tuple[cn.Federation, cn.Federation]) -> None:
    runs = [each.fit(CLASSES, sampler=cn.ImportanceSampling(200), seed=3) for each in federations]
    certificates = [each.certify(run, seed=4) for each, run in zip(federations, runs, strict=True)]
    assert repr(certificates[0]) == repr(certificates[1])


@pytest.mark.parametrize("n_rows_a_group", [1_000, 10_000, 7 * BLOCK_ROWS + 5, 32 * BLOCK_ROWS, 10**6])
@pytest.mark.parametrize("some", [None, [0], [3, 4, 5, 30, 60], []])
def test_pieces_are_all_blocks_once_and_read_little_twice(
    tmp_path: Path, n_rows_a_group: int, some: list[int] | None
) -> None:
    rows = open_rows("t", [write(tmp_path / "a.parquet", np.arange(10.0**6)[:, np.newaxis], n_rows_a_group)], ["a_0"])
    pieces = list(rows.pieces(some))
    numbers = list(range(62)) if some is None else some
    assert [number for piece in pieces for number in piece] == numbers
    np.testing.assert_array_equal(
        np.concatenate([[-1.0], *(block.values[:, 0] for piece in pieces for block in rows.blocks(piece))]),
        np.concatenate([[-1.0], *(block.values[:, 0] for block in rows.blocks(numbers))]),
    )
    starts = [first_group(rows, piece[0]) for piece in pieces]
    assert len(starts) == len(set(starts)), "a group is begun by one piece"
    if some is None and n_rows_a_group < PIECE_ROWS:
        assert len(pieces) > 2


def first_group(rows: Any, number: int) -> int:
    return next(place for place, group in enumerate(rows.groups) if number * BLOCK_ROWS < group.end)


def test_memory_for_results_stays_where_it_is() -> None:
    """A work that puts numbers into an array of this process is sent without it, and makes its own there."""
    room = _Room(np.zeros(N_ROWS), first=BLOCK_ROWS)
    sent = pickle.dumps(partial(_fill, products(np.array([2.0, 1.0])).make, room))
    assert len(sent) < 1000
    block = Block(1, np.ones((5, 2)))
    assert pickle.loads(sent)(block).tolist() == [3.0] * 5  # noqa: S301  # our own
    place = room.of(block)
    assert place is not None
    assert place.tolist() == [0.0] * 5
