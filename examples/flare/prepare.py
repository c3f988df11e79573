"""For a trial on one machine: put what each owner would write down into the folders that `nvflare provision` made.

    python prepare.py provisioned/colonnade/prod_00

At each site: NAME.toml, the data, and an identity with everybody's pins. At the server: its identity and the pins. And
at all of them the permission to run Colonnade's class and FLARE's that calls it: FLARE refuses jobs that name classes
which a site did not allow.
"""

import json
import shutil
import sys
from pathlib import Path

from colonnade.ledger import SERVER
from colonnade.node.identity_files import PINS, new_identity

HERE = Path(__file__).parent
ALLOWED = {
    "server": ["nvflare.collab.runtime.controller.CollabController", "colonnade.flare_job.JobServer"],
    "party": ["nvflare.collab.runtime.executor.CollabExecutor", "colonnade.flare_job.SiteParty"],
}


def allow(local: Path, classes: list[str]) -> None:
    """Add classes to those that a site runs."""
    resources = json.loads((local / "resources.json.default").read_text())
    resources["class_allow_list"] += classes
    (local / "resources.json").write_text(json.dumps(resources, indent=2))


def prepare(provisioned: Path) -> None:
    """Prepare the server and every site."""
    server = provisioned / "localhost" / "local"
    allow(server, ALLOWED["server"])
    pins = {server: new_identity(server, SERVER)}
    for file in sorted((HERE / "local").glob("*.toml")):
        local = provisioned / file.stem / "local"
        allow(local, ALLOWED["party"])
        shutil.copy(file, local)
        shutil.copy(HERE.parent / "bank" / f"{file.stem}.csv", local)
        pins[local] = new_identity(local, file.stem)
    for local in pins:
        (local / PINS).write_text("\n".join(pins.values()) + "\n")


if __name__ == "__main__":
    prepare(Path(sys.argv[1]))
