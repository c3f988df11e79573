"""What verbs cost beside their arithmetic, files beside reading them, clusters beside scikit-learn, and how all grows.

    python benchmarks/scale.py [verbs compact strata files clusters growth parties]
                               [--large] [--again] [--data FOLDER] [--out FILE]

Without names it is all of them, under a quarter of an hour on two cores; `--large` has what takes hours as well. Lines
go to a file; a case that stands there is not measured again unless it is told `--again`. `scripts/scale_page.py FILE`
draws docs/explanation/scale.md from it. No time is a bar: factors are.
"""

import argparse
import importlib
import os
import time
import warnings
from pathlib import Path

BENCHES = ("verbs", "compact", "strata", "files", "clusters", "growth", "parties")
ON_REAL_TABLES = ("compact", "strata", "clusters")


def main() -> None:
    """Measure what is missing."""
    os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")  # read when NumPy is imported, which is below
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("benches", nargs="*", metavar="BENCH", help=f"of {', '.join(BENCHES)}")
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("COLONNADE_DATA", ".")))
    parser.add_argument("--out", type=Path, default=Path("bench-output/scale.jsonl"))
    options = parser.parse_args()
    if unknown := set(options.benches) - set(BENCHES):
        parser.error(f"there is no {', '.join(sorted(unknown))}; choose of {', '.join(BENCHES)}")
    from side_by_side import Store

    store = Store(options.out, again=options.again)
    warnings.simplefilter("ignore")  # of few rows, what is shown, and solvers that stop early: none is the matter here
    for name in options.benches or BENCHES:
        started, bench = time.perf_counter(), importlib.import_module(name)
        more = {"data": options.data} if name in ON_REAL_TABLES else {}
        bench.measure(store, large=options.large, **more)
        print(f"{name}: {time.perf_counter() - started:.0f} s\n", flush=True)
    print(f"Stored in {options.out}. `python scripts/scale_page.py {options.out}` draws the page from it.")


if __name__ == "__main__":
    main()
