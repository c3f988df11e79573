"""Make paper/authors.json: what the paper's authors stored and printed, from their results and the paper's source.

    python scripts/authors_table.py authors_stored_results.csv paper.tex > src/colonnade/paper/authors.json

`size` is null for the fit of all rows. Where the authors reused a result for another number of parties (appendix A.1),
so does this table.
"""

import csv
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

SIZES = range(1000, 6001, 1000)
HOUSE_SIZES = range(100, 601, 100)
Stored = dict[tuple[str, str], tuple[float, float]]
Printed = dict[tuple[str, int | None], float]


def stored_results(path: Path) -> Stored:
    """Read mean and std of each of the authors' runs."""
    with path.open() as file:
        return {(row["folder"], row["name"]): (float(row["mean"]), float(row["std"])) for row in csv.DictReader(file)}


def printed_results(path: Path) -> Printed:
    """Read the costs of Table 1."""
    printed: Printed = {}
    methods: list[str] = []
    for line in path.read_text().splitlines():
        costs = re.findall(r"(\d+\.\d\d)/\d", line)
        methods = re.findall(r"\\textsc\{((?:[CU]-)?(?:Central|SAGA|Kmeans\+\+|DistDim))\}", line) or methods
        if costs and line.lstrip().startswith("\\multicolumn"):
            printed[methods[0], None] = float(costs[0])
        elif costs and (size := re.match(r"\s*(\d+) &", line)):
            printed |= {(name, int(size[1])): float(cost) for name, cost in zip(methods, costs, strict=True)}
    return printed


def regression_names(solver: str, folder: str, ending: str, sizes: range) -> Iterator[tuple[str, int | None, str]]:
    """Pair the method and size of each cell of a regression with the authors' name for it."""
    theirs = {"Central": "centralized", "SAGA": "saga"}[solver]
    yield solver, None, f"{folder}-{theirs}-{ending}"
    for prefix in "CU":
        for size in sizes:
            yield f"{prefix}-{solver}", size, f"{folder}-{theirs}-{prefix.lower()}{size}s-{ending}"


def clustering_names(solver: str, k: int, sizes: range, kc: str = "") -> Iterator[tuple[str, int | None, str]]:
    """Do the same for a clustering."""
    theirs = kc + {"Kmeans++": "kmeans", "DistDim": "distkmeans"}[solver]
    yield solver, None, f"{theirs}-{k}c"
    for prefix, word in (("C", "coreset"), ("U", "uniform")):
        for size in sizes:
            yield f"{prefix}-{solver}", size, f"{theirs}-{word}-{k}c{size}s"


def cells(stored: Stored, printed: Printed) -> Iterator[dict[str, object]]:
    """List every cell of every experiment that the authors stored."""

    def cell(experiment: str, task: str, method: str, size: int | None, *names: tuple[str, str]) -> dict[str, object]:
        mean, std = next((stored[name] for name in names if name in stored), (None, None))
        in_table = printed.get((method, size)) if experiment.startswith("table1") else None
        return {
            "experiment": experiment,
            "task": task,
            "method": method,
            "size": size,
            "stored_mean": mean,
            "stored_std": std,
            "printed": in_table,
        }

    for solver in ("Central", "SAGA"):
        for method, size, name in regression_names(solver, "ridge", "test", SIZES):
            yield cell("table1-regression", "ridge", method, size, ("ridge-res", name))
            five = re.sub(r"(\d+s)", r"\g<1>5p", name)
            yield cell("parties", "ridge", method, size, ("ridge", five), ("ridge-res", name))
        for method, size, name in regression_names(solver, "lr", "train", SIZES):
            yield cell("regularisers", "plain", method, size, ("lr", name))
        for method, size, name in regression_names(solver, "ridge", "train", HOUSE_SIZES):
            yield cell("kc-house", "plain", method, size, ("ridge-kc", name))
    for task, folder in (("lasso", "lasso"), ("elastic net", "en")):
        for method, size, name in regression_names("Central", folder, "train", SIZES):
            yield cell("regularisers", task, method, size, (folder, name))
    for solver in ("Kmeans++", "DistDim"):
        for method, size, name in clustering_names(solver, 10, SIZES):
            yield cell("table1-clustering", "k-means", method, size, ("kmeans-res", name))
            yield cell("parties", "k-means", method, size, ("kmeans", f"{name}5p"), ("kmeans-res", name))
        for method, size, name in clustering_names(solver, 5, SIZES):
            yield cell("centres", "k-means", method, size, ("kmeans", name))
        for method, size, name in clustering_names(solver, 5, HOUSE_SIZES, "kc-"):
            yield cell("kc-house", "k-means", method, size, ("kmeans", name))


def main() -> None:
    """Print the table, one cell a line."""
    results, paper = (Path(argument) for argument in sys.argv[1:])
    found = [c for c in cells(stored_results(results), printed_results(paper)) if c["stored_mean"] is not None]
    sys.stdout.write("[\n" + ",\n".join(json.dumps(cell) for cell in found) + "\n]\n")


if __name__ == "__main__":
    main()
