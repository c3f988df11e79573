"""What the hub says, without a network; the rest is tried with one in tests/network."""

import io
import sys

import pytest

from colonnade.transports import terminal
from colonnade.transports.grpc.talk import MissingParties


class Full(io.StringIO):
    def write(self, _: str) -> int:
        raise OSError(28, "No space left on device")


def test_of_many_missing_parties_the_first_are_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "LEAST_PAUSE", 0.0)
    tell = MissingParties()
    tell([])
    tell([f"p{number}" for number in range(12)])
    tell(["bank", "shop"])
    tell(["bank", "shop"])
    tell([])
    tell([])
    assert capsys.readouterr().err.splitlines() == [
        "colonnade: waiting for p0, p1, p2, p3, p4, p5, p6, p7, p8, p9 and 2 more",
        "colonnade: waiting for bank, shop (0 s)",
        "colonnade: all parties are connected",
    ]


def test_where_nothing_can_be_said_the_server_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Full())
    MissingParties()(["bank"])
