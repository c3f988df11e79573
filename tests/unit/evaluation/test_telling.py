"""Every party is told its part of a model that it helped to learn, and knows it again, and no other."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import colonnade as cn
from colonnade.catalogue import party_session
from colonnade.data.tables import read_table
from colonnade.evaluation.telling import ModelKept, TellModel, model_digest, tell_model
from colonnade.messages import sendable_floats
from colonnade.protocol.hello import WIRE_VERSION, Hello
from colonnade.protocol.memory import ModelNote
from colonnade.protocol.policy import Policy
from colonnade.protocol.refusal import Refused
from colonnade.protocol.session import PartySession
from harness import watch

arrays = st.none() | hnp.arrays("float64", hnp.array_shapes(max_dims=2, max_side=3)).map(sendable_floats)
parts = st.tuples(arrays, arrays, arrays)


def bits(part: Any) -> list[Any]:
    return [None if each is None else (each.shape, each.tobytes()) for each in part]


@given(parts, parts)
def test_parts_have_one_digest_just_if_they_are_the_same_bit_for_bit(first: Any, second: Any) -> None:
    assert (model_digest(first) == model_digest(second)) == (bits(first) == bits(second))


def test_an_array_in_another_place_or_shape_is_another_part() -> None:
    row = sendable_floats([1.0, 2.0])
    found = [(row, None, None), (None, row, None), (None, None, row), (None, row.reshape(1, 2), None)]
    assert len({model_digest(part) for part in found}) == len(found)


def session() -> PartySession:
    opened = party_session(read_table("airline", np.eye(4)[:, :2]), Policy(level="open"))
    opened.answer(Hello(WIRE_VERSION))
    return opened


def test_a_party_remembers_what_it_was_told() -> None:
    asked, told = session(), TellModel(sendable_floats([1.0, 2.0]), None, None)
    assert isinstance(asked.answer(told), ModelKept)
    assert asked._data.memory.notes() == {ModelNote(model_digest(told.part))}


@pytest.mark.parametrize("coef", [[1.0], [1.0, 2.0, 3.0], [[1.0], [2.0]], []])
def test_a_part_of_other_columns_is_refused(coef: Any) -> None:
    asked = session()
    for told in (TellModel(sendable_floats(coef), None, None), TellModel(None, sendable_floats(coef), None)):
        reply = asked.answer(told)
        assert isinstance(reply, Refused)
        assert "for 2 features" in reply.reason
    assert asked._data.memory.notes() == frozenset()


@pytest.mark.parametrize("task", [cn.Regression(l2=0.1), cn.KMeans(2, standardize=True)], ids=str)
def test_every_fit_ends_by_telling_each_party_the_part_of_the_model_that_is_returned(task: Any) -> None:
    X = np.random.default_rng(0).normal(size=(40, 5))
    federation = cn.Federation(cn.split_columns(X, X[:, 0], [2, 3]))
    sessions = watch(federation)
    run = federation.fit(task, sampler=cn.UniformSampling(20))
    for party, part in run.model.parts(federation.roster).items():
        assert ModelNote(model_digest(part)) in sessions[party]._data.memory.notes()
    told = [entry for entry in run.ledger if entry.phase == "telling"]
    assert [(entry.kind, entry.units) for entry in told] == 2 * [("TellModel", 0)] + 2 * [("ModelKept", 0)]
    assert {entry.round for entry in told} == {max(entry.round for entry in run.ledger)}, "one round, the last"
    assert [entry.reveals for entry in told if entry.sender != "server"] == [(), ()]


def test_parts_go_to_the_parties_they_are_of() -> None:
    mine, theirs = ((sendable_floats([number]), None, None) for number in (1.0, 2.0))
    script = tell_model({"a": mine, "b": theirs})
    outbox = next(script)
    assert {name: request.part for name, request in outbox.items() if isinstance(request, TellModel)} == {
        "a": mine,
        "b": theirs,
    }
