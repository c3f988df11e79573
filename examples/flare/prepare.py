"""For a trial on one machine: put what each owner would write down into the folders that `nvflare provision` made.

    python prepare.py provisioned/colonnade/prod_00

At each site, NAME.toml and the data; and at all, the permission to run Colonnade's two classes and FLARE's two that call
them. FLARE refuses jobs that name classes which its site did not allow.
"""

import json
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
ALLOWED = {
    "server": ["nvflare.collab.runtime.controller.CollabController", "colonnade.cli.flare.JobServer"],
    "party": ["nvflare.collab.runtime.executor.CollabExecutor", "colonnade.cli.flare.SiteParty"],
}


def allow(local: Path, classes: list[str]) -> None:
    """Add classes to those that a site runs."""
    resources = json.loads((local / "resources.json.default").read_text())
    resources["class_allow_list"] += classes
    (local / "resources.json").write_text(json.dumps(resources, indent=2))


def prepare(provisioned: Path) -> None:
    """Prepare the server and every site."""
    allow(provisioned / "localhost" / "local", ALLOWED["server"])
    for file in sorted((HERE / "local").glob("*.toml")):
        local = provisioned / file.stem / "local"
        allow(local, ALLOWED["party"])
        shutil.copy(file, local)
        shutil.copy(HERE.parent / "bank" / f"{file.stem}.csv", local)


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
