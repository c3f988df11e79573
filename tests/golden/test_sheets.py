"""What stands on a job sheet, frozen: its bytes, and what is usual, which it leaves out. Raise WIRE_VERSION with it."""

from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

import colonnade as cn
from colonnade.branches import Branch
from colonnade.contracts import PartyCard, Roster
from colonnade.job_sheets import KINDS, sheet_of
from colonnade.protocol.caps import Branches
from colonnade.protocol.hello import WIRE_VERSION

GOLDEN = Path(__file__).with_name(f"sheets_v{WIRE_VERSION}.txt")
ROSTER = Roster((PartyCard("shop", 9, ("x",), None, has_weights=True), PartyCard("bank", 9, ("t", "u"), "y")))
FIT = {"task": cn.Regression(l2=0.5), "sampler": cn.ImportanceSampling(5, 0.25), "solver": cn.CompactCentral(0.7)}
PLANNED = {"task": cn.KMeans(n_clusters=3), "pilot": 4, "branches": Branches(("central", "compact"), 2, 9), "seed": 7}
ENCODED = {
    "fit": msgspec.msgpack.encode(sheet_of("fit", {**FIT, "split": cn.HoldOut(0.25)}, ROSTER, "bank")),
    "planned": msgspec.msgpack.encode(sheet_of("planned", PLANNED, ROSTER, None)),
    "branch by scores": Branch("scores", 1300, 0.724).encoded(),
    "branch of all rows": Branch("all", None, None).encoded(),
}


def usual(kind: type[Any]) -> str:
    """Lay out the options of a kind that have a usual value."""
    fields = msgspec.structs.fields(kind)
    return ", ".join(f"{each.name}={each.default!r}" for each in fields if each.default is not msgspec.NODEFAULT)


def lines() -> dict[str, str]:
    kinds = {f"{name} {kind.__name__}": usual(kind) for name, union in KINDS.items() for kind in get_args(union)}
    return {**{name: text.hex() for name, text in ENCODED.items()}, **kinds}


def golden() -> dict[str, str]:
    return dict(line.split(": ", 1) for line in GOLDEN.read_text().splitlines())


def test_nothing_is_missing() -> None:
    assert golden().keys() == lines().keys()


@pytest.mark.parametrize("name", lines())
def test_it_is_the_golden_one(name: str) -> None:
    assert lines()[name] == golden()[name]
