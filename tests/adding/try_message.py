"""Played by test_adding.py in a copy of the library that has the toy message: it travels; tests ask for the rest."""

import runpy

import numpy as np
import pytest

import colonnade as cn
from adding.laws import PROJECT
from colonnade.diagnostics import toy_message  # type: ignore[attr-defined]  # it is in the copy
from colonnade.transports.loopback import Loopback
from harness import play
from strategies import MESSAGES

federation = cn.Federation(cn.split_columns(np.eye(6), None, [4, 2]), transport=Loopback)
assert play(federation, toy_message.count_zeros(federation.roster)) == {"party1": 20, "party2": 10}
assert [entry.kind for entry in federation.sent] == ["AskZeros", "AskZeros", "Zeros", "Zeros"]
assert (federation.sent.units, {entry.phase for entry in federation.sent}) == (2, {"diagnosing"})
parties = cn.split_columns(np.eye(6), None, [4, 2])
parties[1].policy = cn.Policy(level="open", never=["moments"])
guarded = cn.Federation(parties)
with pytest.raises(cn.PolicyRefusedError, match="party2"):
    play(guarded, toy_message.count_zeros(guarded.roster))
script = toy_message.count_zeros(federation.roster)
with pytest.raises(cn.LocalProtocolError, match="UseAllRows would be next in this job, not AskZeros"):  # until a route
    federation._runtime.play(script, "coreset", task=cn.KMeans(2), sampler=cn.AllRows())
page = runpy.run_path(str(PROJECT / "scripts" / "reference.py"))["messages_page"]()
assert "### `AskZeros`\n\nCount the zeros among your values.\n\n- request, answered by [`Zeros`](#zeros)" in page
assert {toy_message.AskZeros, toy_message.Zeros} <= MESSAGES.keys(), "tests of the codec make messages of every kind"
with pytest.raises(AssertionError):  # until it has an example
    runpy.run_path(str(PROJECT / "tests" / "golden" / "test_wire_bytes.py"))["test_every_kind_is_frozen"]()
