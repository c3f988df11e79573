"""What is shown while a command works."""

import io

import pytest
from rich.console import Console

import colonnade as cn
from colonnade.alignment import listing
from colonnade.cli.console import RoundProgress, how_far
from colonnade.protocol.conductor import RoundNumber


@pytest.mark.parametrize(
    ("number", "seconds", "said"),
    [
        (7, 100.0, "round 7"),
        (RoundNumber.of(3, 106), 1.0, "round 3"),
        (RoundNumber.of(36, 100), 70.0, "35% (about 2 min left)"),
        (RoundNumber.of(96, 100), 95.0, "95% (about 5 s left)"),
    ],
)
def test_how_far(number: int, seconds: float, said: str) -> None:
    assert how_far(number, seconds) == said


@pytest.mark.parametrize("mode", ["clear", "aided", "curve"])
def test_rounds_of_an_alignment_are_counted_beforehand(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    monkeypatch.setattr(listing, "BLOCK_KEYS", 4)
    told: list[int] = []
    parties = [cn.Party(name, pa.table({"id": range(n), "a": [1.0] * n}), key="id") for name, n in (("a", 9), ("b", 5))]
    cn.Federation(parties, align=mode, on_round=lambda _, number: told.append(number))  # type: ignore[arg-type]
    counted = [number for number in told if isinstance(number, RoundNumber)]
    assert [int(number) for number in counted] == list(range(1, len(counted) + 1))
    assert {number.total for number in counted} == {len(counted)}


def test_how_far_a_pass_is_stands_beside_the_round() -> None:
    with Console(file=io.StringIO()).status("reading") as status:
        progress = RoundProgress(status)
        shown: list[object] = []
        progress.of_pass("1 of 2 blocks")
        shown.append(status.status)
        progress.of_pass("")
        shown.append(status.status)
        progress("scores", 2)
        progress.of_pass("2 of 3 blocks")
        shown.append(status.status)
    assert shown == ["reading, 1 of 2 blocks", "reading", "scores: round 2, 2 of 3 blocks"]
