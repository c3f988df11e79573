"""List the packages of a lock as a CycloneDX bill of materials (JSON, specification 1.6), on standard output.

    python scripts/sbom.py requirements-runtime.lock > sbom.json

A lock has names, versions and digests, which is what a bill of materials asks for: no tool beside it is needed.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).parents[1]
PACKAGE = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;]+)(?: ; (?P<marker>[^\\]+))?", flags=re.MULTILINE)
DIGEST = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def components(lock: str) -> Iterator[dict[str, object]]:
    """Give each package of a lock: its name, version, where it is asked for, and the digests of its files."""
    found = list(PACKAGE.finditer(lock))
    for package, following in zip(found, [*found[1:], None], strict=True):
        name, version, marker = package["name"], package["version"], package["marker"]
        digests = DIGEST.findall(lock, package.end(), following.start() if following else len(lock))
        purl = f"pkg:pypi/{name}@{version}"
        where = [] if marker is None else [{"name": "colonnade:marker", "value": marker.strip()}]
        yield {
            "type": "library",
            "bom-ref": purl,
            "name": name,
            "version": version,
            "purl": purl,
            # Each file of the package, one for every platform, has its own.
            "properties": [*where, *({"name": "colonnade:sha256", "value": digest} for digest in digests)],
        }


def bill_of(lock: str) -> dict[str, object]:
    """Make the bill of a lock."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    subject = {"type": "application", "name": project["name"], "version": project["version"]}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**subject, "licenses": [{"license": {"id": project["license"]}}]}},
        "components": list(components(lock)),
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(bill_of(Path(sys.argv[1]).read_text()), indent=2) + "\n")
