"""Files of preparation that somebody changed: at a party, and in a model that comes from anyone."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import colonnade as cn
from colonnade.job_sheets import sheet_of
from colonnade.preparation.preparation import MAX_JSON_BYTES
from colonnade.protocol.fingerprints import Tables, key_here
from colonnade.protocol.preparations import preparation_name
from hostile.test_preparing import TASK, USUAL, prepared_by, town, two_levels
from hostile_trial import hostile_server, turned_away


def _pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def _link(path: Path, target: Path) -> None:
    path.unlink()
    path.symlink_to(target)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "torn": lambda path: path.write_bytes(path.read_bytes()[:-20]),
    "empty": lambda path: path.write_bytes(b""),
    "a digit": lambda path: path.write_text(path.read_text().replace("driver", "drives")),
    "another one": lambda path: path.write_bytes(b'{"columns":[]}'),
    "of a later format": lambda path: path.write_text(path.read_text().replace('"format":1', '"format":2')),
    "huge": lambda path: os.truncate(path, MAX_JSON_BYTES + 1),
    "a pipe": _pipe,
    "a link": lambda path: _link(path, path.parent / "memory.notes"),
    "a link to itself": lambda path: _link(path, path),
    "gone": Path.unlink,
}
SAID = "is not as it was when it was kept|cannot be read: |does not have the preparation"


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_preparation_that_was_changed_at_a_party_is_not_used(damage: str, tmp_path: Path) -> None:
    """Columns would be others than the model's; preparing them anew mends it."""
    with hostile_server(tmp_path, town(table=two_levels()), USUAL) as server:
        roster = prepared_by(server)
        server.begin()  # that run is over: it will not be played again
    (path,) = (tmp_path / "bank-state").glob("prepared-*.json")
    honest = path.read_bytes()
    DAMAGES[damage](path)
    with hostile_server(tmp_path, town(table=two_levels()), USUAL) as server:
        job = sheet_of("coreset", {"task": TASK, "sampler": cn.AllRows()}, roster, None)
        refusal = turned_away(lambda: server.open(job), SAID)
        assert refusal.party == "bank"
        assert str(tmp_path) not in str(server.received)
        assert prepared_by(server) == roster
        server.open(job)
    assert path.read_bytes() == honest
    assert path.stat().st_mode & 0o077 == 0


@pytest.fixture(scope="module")
def model() -> cn.LinearModel:
    found: cn.LinearModel = cn.Federation(here()).fit(TASK, sampler=cn.AllRows()).model
    return found


def here() -> list[cn.Party]:
    return town(table=two_levels())


def named(content: str) -> Tables:
    """Name a preparation as who knows how names are made can: in one process there is no secret."""
    return Tables(
        120, {}, None, {"bank": preparation_name(key_here("bank").key, b"", content.encode())}, {"bank": content}
    )


COLUMN = {"kind": "number", "column": "age", "scaling": {"fill": 0.0}, "indicator": False}
LEVELS = {"kind": "category", "column": "job", "reference": "a", "rare": [], "unknown": "other", "missing": "error"}
CONTENTS: dict[str, tuple[str, str]] = {
    "nothing": ("", "cannot be read"),
    "no preparation": ("[1]", "cannot be read"),
    "nested": ("[" * 100_000, "cannot be read"),
    "no columns": (json.dumps({"columns": []}), "not as they are|no columns|other columns"),
    "other columns": (json.dumps({"columns": [COLUMN]}), "not as they are|other columns"),
    "columns that are not there": (
        json.dumps({"columns": [{**COLUMN, "column": f"x{i}"} for i in range(3)]}),
        "no column 'x0'|other columns",
    ),
    "a column twice": (json.dumps({"columns": [COLUMN, COLUMN]}), "would be called 'age'"),
    "levels without end": (
        json.dumps({"columns": [{**LEVELS, "levels": [str(i) for i in range(5000)]}]}),
        "has 5,001 levels",
    ),
    "infinite": (json.dumps({"columns": [{**COLUMN, "scaling": {"fill": 1e300}}]}), "1e.300 is not a number up to"),
    "a deviation of zero": (
        json.dumps({"columns": [{**COLUMN, "scaling": {"fill": 0.0, "deviation": 0.0}}]}),
        "a deviation of 0",
    ),
    "a later format": (json.dumps({"columns": [COLUMN], "format": 9}), "later version"),
}


@pytest.mark.filterwarnings("ignore::colonnade.AssumptionWarning")
@pytest.mark.parametrize("content", CONTENTS)
def test_a_model_with_another_preparation_is_one_clear_error(content: str, model: cn.LinearModel) -> None:
    """Also where it is named as if it were the party's own."""
    text, why = CONTENTS[content]
    forged = replace(model, learned_from_=named(text))
    with pytest.raises(cn.ColonnadeError, match=why):
        cn.Federation(here()).predict(forged)
    with pytest.raises(cn.InputError, match=why):
        forged.to_sklearn()


def with_tables(model: cn.LinearModel, **changes: Any) -> cn.LinearModel:
    assert model.learned_from_ is not None
    return replace(model, learned_from_=replace(model.learned_from_, **changes))


def test_a_preparation_in_a_model_is_the_one_of_its_name(model: cn.LinearModel) -> None:
    """Another under the same name would change what other models in this process give."""
    federation = cn.Federation(here())
    before = federation.predict(model)
    assert model.learned_from_ is not None
    other = model.learned_from_.preparations["bank"].replace("driver", "clerk2")
    lies: list[dict[str, Any]] = [
        {"preparations": {"bank": other}},
        {"prepared": {}},
        {"prepared": {"bank": "\x1b[31m"}},
    ]
    for changes in lies:
        with pytest.raises(cn.InputError, match=r"now it prepares|preparation of columns of 'bank' is not as it was"):
            federation.predict(with_tables(model, **changes))
    assert (federation.predict(model) == before).all()


def test_a_model_without_its_preparation_says_so(model: cn.LinearModel) -> None:
    with pytest.raises(cn.InputError, match="does not have the preparation"):
        cn.Federation(here()).predict(with_tables(model, preparations={}))
    stranger = with_tables(model, preparations={**model.learned_from_.preparations, "stranger": "{"})  # type: ignore[union-attr]
    assert len(cn.Federation(here()).predict(stranger)) == 120
