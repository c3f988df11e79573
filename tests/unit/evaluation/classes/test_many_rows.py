"""Classifications of many rows: memory that no table makes grow, and the numbers of few rows."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import colonnade as cn
from colonnade.kernels import per_row

CHILD = """
import sys
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.dataset as ds
from pyarrow import parquet
import colonnade as cn
from colonnade.kernels import per_row
per_row.KEPT_ROWS = 1 << 18  # so that few rows are many
path, n_rows, job = sys.argv[1], int(sys.argv[2]), sys.argv[3]
schema = pa.schema([("a", pa.float32()), ("b", pa.float32()), ("y", pa.int8())])
with parquet.ParquetWriter(path, schema) as writer:
    for part in range(n_rows // 100_000):
        a, b, noise = np.random.default_rng(part).normal(size=(3, 100_000))
        classes = np.digitize(a + 2 * b + noise, [-1, 1] if job in ("three", "masked") else [0])
        writer.write_table(pa.table({"a": a, "b": b, "y": classes}).cast(schema))
federation = cn.Federation([
    cn.Party("bank", ds.dataset(path), label="y", policy=cn.Policy(level="open", columns=["a", "y"])),
    cn.Party("shop", ds.dataset(path), policy=cn.Policy(level="open", columns=["b"])),
])
run = federation.fit(cn.Classification(), sampler=cn.ImportanceSampling(500))
by = "bank" if job == "masked" else None
federation.certify(run, rows=300) if job == "certify" else federation.evaluate(run.model, by=by)
status = Path("/proc/self/status").read_text()
print(int(status.split("VmHWM:")[1].split()[0]) // 1024)
"""


@pytest.mark.slow
@pytest.mark.parametrize("job", ["two", "three", "masked", "certify"])
def test_memory_does_not_grow_with_the_rows_that_are_compared(tmp_path: Path, job: str) -> None:
    """2 million rows more; at 8 bytes each they would be 16 MB, and at 270, as they were of three classes, 540."""
    small, large = (
        int(
            subprocess.run(
                [sys.executable, "-c", CHILD, str(tmp_path / f"{n}.parquet"), str(n), job],
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for n in (1_000_000, 3_000_000)
    )
    assert large - small < 16


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("by", [None, "shop"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_report_of_many_rows_is_that_of_few(
    n_classes: int, by: str | None, weighted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(n_classes)
    X = rng.normal(size=(40_000, 2))
    label = np.digitize(X @ [1.0, 2.0] + rng.normal(size=40_000), [0.0] if n_classes == 2 else [-1.0, 1.0])
    weight = rng.integers(0, 3, 40_000).astype(float) if weighted else None
    federation = cn.Federation([cn.Party("bank", X[:, :1], weight=weight), cn.Party("shop", X[:, 1:], label=label)])
    model = federation.fit(cn.Classification(), sampler=cn.ImportanceSampling(500)).model
    few = federation.evaluate(model, by=by)
    drawn = federation.evaluate(model, rows=500, by=by)
    monkeypatch.setattr(per_row, "KEPT_ROWS", 2000)
    many = federation.evaluate(model, by=by)
    assert [many.cost, many.brier] == pytest.approx([few.cost, few.brier], rel=1e-11)
    assert (many.accuracy, many.confusion) == (few.accuracy, few.confusion)
    assert many.auc == pytest.approx(few.auc, abs=1e-5)
    assert many.auc_interval is not None
    assert few.auc_interval is not None
    (low, high), (least, most) = many.auc_interval, few.auc_interval
    assert low <= least + 1e-6
    assert high >= most - 1e-6
    assert high - low < (1.05 if n_classes == 2 else 2) * (most - least)
    assert [line.predicted for line in many.calibration] == pytest.approx(
        [line.predicted for line in few.calibration], rel=1e-2
    )
    assert federation.evaluate(model, rows=500, by=by) == drawn
