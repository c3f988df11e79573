"""How far one job walks through the library: a third fewer switches from file to file than before it was rebuilt.

What the guard does (sheets, routes, signatures) is new since then and counted apart, and so is what brings rows to the
work on them, block by block. The round that opens a job, and the one that ends it, go the way of every round, three
parties each: about 45 switches a round, which come on top.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

WALK = Path(__file__).parents[2] / "scripts" / "walk.py"
BEFORE = {"fit": 475, "secure": 1693}
TWO_ROUNDS = 92


def test_a_job_switches_files_a_third_less_often_than_it_did() -> None:
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    found = subprocess.run(
        [sys.executable, str(WALK), "--json"], capture_output=True, text=True, check=True, env=environment
    )
    walks = json.loads(found.stdout)
    for job, switches in BEFORE.items():
        most = switches * 2 / 3 + TWO_ROUNDS
        assert walks[job]["unguarded"] <= most, f"{job}: see `python scripts/walk.py --files {job}`"
        assert walks[job]["without rows"] <= 1.5 * switches, f"{job}, with what the guard does"
