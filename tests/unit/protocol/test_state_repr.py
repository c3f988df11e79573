"""What a party keeps is not to be read in a log: no repr of its state shows a number that is made of its columns."""

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.privacy.identities import identities_here
from colonnade.sampling.committed.party import CommittedDraw
from secure_trial import Entropy, Wire, forms_of, made_parties

JOBS: dict[str, Any] = {
    "clustering": lambda f: f.fit(cn.KMeans(3, standardize=True), sampler=cn.AllRows(), solver=cn.SecureLloyd()),
    "gram": lambda f: f.fit(cn.Regression(l2=0.1), sampler=cn.UniformSampling(40), solver=cn.SecureGram()),
    "saga": lambda f: f.fit(cn.Regression(l2=0.1), sampler=cn.UniformSampling(40), solver=cn.Saga(tolerance=0.1)),
    "sampling": lambda f: f.coreset(cn.Regression(standardize=True), cn.ImportanceSampling(40)),
    "predictions": lambda f: f.deliver(cn.LinearModel(np.arange(1.0, 7.0), 2.5, f.roster.feature_names), "party2"),
}


def arrays_in(value: Any) -> Iterator[Any]:
    """Find all arrays of real numbers in a state, however deep."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64:
        yield value
    elif is_dataclass(value):
        for each in fields(value):
            yield from arrays_in(getattr(value, each.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from arrays_in(each)


def parts(state: Any) -> list[Any]:
    return [state, state.secret, state.learning, state.received]


@pytest.mark.parametrize("job", JOBS)
def test_no_number_of_a_partys_state_is_in_its_repr(job: str) -> None:
    texts: set[str] = set()
    numbers: set[str] = set()

    def watch(_sender: str, _receiver: str, data: bytes) -> bytes:
        for session in wire.sessions.values():
            texts.update(
                map(repr, [*parts(session.state), session, session._data, session._data.seen(session.state.view)])
            )
            found = [*arrays_in(session._data.table), *arrays_in(session.state)]
            numbers.update(f"{abs(each):.6f}" for array in found for each in array.reshape(-1) if each % 1)
        return data

    wire = Wire(watch)
    JOBS[job](cn.Federation(made_parties(60), transport=wire))
    assert len(numbers) > 300
    shown = " ".join(texts)
    assert "array(" not in shown
    assert not {number for number in numbers if re.search(rf"\b{re.escape(number[:-2])}", shown)}


def test_a_contribution_to_a_joint_seed_is_not_shown_either() -> None:
    texts: set[bytes] = set()
    secrets: set[bytes] = set()

    def watch(_sender: str, _receiver: str, data: bytes) -> bytes:
        kept = [session.state.secret for session in wire.sessions.values()]
        texts.update(repr(each).encode() for each in kept)
        secrets.update(each.contribution for each in kept if isinstance(each, CommittedDraw))
        return data

    parties = made_parties(60, identities=identities_here(["party1", "party2", "party3"], Entropy()))
    wire = Wire(watch)
    cn.Federation(parties, transport=wire).coreset(cn.Regression(), cn.ImportanceSampling(40, draws="committed"))
    assert len(secrets) == 3
    assert not [text for text in texts for secret in secrets for form in forms_of(secret) if form in text]
