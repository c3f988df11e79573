"""Gram mode by homomorphic encryption: what comes out, what the server saw, and what meddling and restarts do."""

from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.kernels.gram import local_basis
from colonnade.ledger import SERVER
from colonnade.privacy import ckks
from colonnade.solvers.gram.ckks.messages import AskDecryptedProducts, AskEncryptedProducts, EncryptedRows
from colonnade.solvers.gram.ckks.party import _check_ciphertexts
from colonnade.transports.loopback import Loopback
from secure_trial import Recording, Restarting, Wire, flip_message, float_forms, made_parties, numbers_in

CKKS = cn.SecureGram(products="ckks")
RIDGE = cn.Regression(l2=0.1)


def federation(transport: Any = Loopback) -> cn.Federation:
    return cn.Federation(made_parties(), transport=transport)


CORESET = federation().coreset(RIDGE, cn.ImportanceSampling(40), seed=3).coreset


def fit(transport: Any = Loopback, task: Any = RIDGE) -> cn.Run[Any]:
    return federation(transport).fit(task, coreset=CORESET, solver=CKKS, seed=1)


def objective(run: cn.Run[Any], task: Any = RIDGE) -> float:
    tables = [party.table.take(CORESET.rows) for party in made_parties()]
    X, y = np.hstack([tables[0], tables[1], tables[2][:, :-1]]), tables[2][:, -1]
    return float(task.cost(run.model, X, y, CORESET.weights, CORESET.total_weight))


@pytest.mark.slow
@pytest.mark.parametrize("task", [cn.Regression(), cn.Regression(l2=0.1, l1=1.0)], ids=str)
def test_the_objective_is_centrals_within_1e_12_and_16_mb(task: cn.Regression) -> None:
    """2,000 rows of 3 x 30 columns, heavy-tailed and correlated across parties."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(4, size=(8_000, 90)) @ (np.eye(90) + 0.05 * rng.normal(size=(90, 90))) + 5
    y = X @ rng.normal(size=90) + 10 * rng.normal(size=8_000)
    parties = cn.Federation(cn.split_columns(X, y, [30, 30, 30]))
    coreset = parties.coreset(cn.Regression(), cn.ImportanceSampling(2_000), seed=1).coreset
    runs = [parties.fit(task, coreset=coreset, solver=solver) for solver in (CKKS, cn.Central())]
    costs = [
        task.cost(run.model, X[coreset.rows], y[coreset.rows], coreset.weights, coreset.total_weight) for run in runs
    ]
    assert costs[0] == pytest.approx(costs[1], rel=1e-12)
    assert runs[0].ledger.bytes <= 16_000_000


@pytest.mark.parametrize("task", [RIDGE, cn.Regression(fit_intercept=False), cn.Regression(l1=0.2, standardize=True)])
def test_penalties_intercepts_and_units(task: Any) -> None:
    central = federation().fit(task, coreset=CORESET)
    run = fit(task=task)
    assert run.facts["cost"] == pytest.approx(central.facts["cost"], rel=1e-4)
    np.testing.assert_allclose(run.model.coef_, central.model.coef_, atol=1e-4)
    assert objective(run, task) == pytest.approx(objective(central, task), rel=1e-8)


def test_no_row_or_label_reaches_the_server() -> None:
    wire = Recording()
    parties = federation(wire)
    run = parties.fit(RIDGE, coreset=CORESET, solver=CKKS, seed=1)
    assert run.disclosure.headline == "Nobody was shown features or labels of any row."
    assert {line.what for line in run.disclosure.lines if line.who == SERVER} == {"moments", "schema"}
    told = np.concatenate([numbers_in(reply) for reply in wire.replies()])
    weights = run.coreset.weights / run.coreset.weights.max()
    for session in wire.sessions.values():
        rows = session._data.table.take(run.coreset.rows)
        basis = local_basis(rows, weights)
        for values in (rows, rows - basis.mean, basis.directions):
            assert not np.isin(values[values != 0], told).any()
            assert not [form for form in float_forms(values) if any(form in data for data in wire.received)]
    ciphertexts = [c for reply in wire.replies() if isinstance(reply, EncryptedRows) for c in reply.ciphertexts]
    assert len(set(ciphertexts)) == len(ciphertexts) == 4


def test_a_flipped_bit_is_an_error_and_never_another_model() -> None:
    """A bit of every message after the hello, drawn from a fixed seed."""
    wire = Recording()
    fit(wire)
    rng = np.random.default_rng(0)
    for number in range(6, len(wire.received) + len(wire.sent)):
        with pytest.raises(cn.ColonnadeError):
            fit(Wire(flip_message(number, int(rng.integers(2**20)))))


@pytest.mark.parametrize("kind", [AskEncryptedProducts, AskDecryptedProducts])
def test_bytes_that_no_party_signed_are_not_read(kind: Any) -> None:
    field = "rows" if kind is AskEncryptedProducts else "products"

    def swap(_sender: str, _receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if not isinstance(message, kind) or not any(getattr(message, field)):
            return data
        changed = tuple((b"x" * 99,) * len(each) for each in getattr(message, field))
        return codec().encode(msgspec.structs.replace(message, **{field: changed}))

    with pytest.raises(cn.LocalProtocolError, match=r"did not sign\. Nothing of them was read"):
        fit(Wire(swap))


@pytest.mark.parametrize(
    "data", [b"", b"garbage", bytes(200_000), bytes(ckks.ciphertext_bytes(2)), b"\xff" * ckks.ciphertext_bytes()]
)
def test_garbage_of_a_signed_peer_is_an_error(data: bytes) -> None:
    """Where a server lets it through: by length, or by a residue that is none."""
    assert ckks.is_ciphertext(bytes(ckks.ciphertext_bytes()))
    with pytest.raises(cn.RemoteProtocolError, match="'party1' signed something else than the 1 ciphertexts"):
        _check_ciphertexts("party1", (data,), 1)


@pytest.mark.parametrize(
    "kind", ["AskPairKey", "AskEncryptedRows", "AskEncryptedProducts", "AskDecryptedProducts", "AskPairAgreement"]
)
def test_a_party_that_restarts_inside_the_phase_changes_nothing(kind: str) -> None:
    restarting = Restarting(kind, party="party2")
    assert objective(fit(restarting)) == pytest.approx(objective(fit()), rel=1e-8)
    assert restarting.restarts == 1


def test_penalties_cannot_be_chosen_by_it() -> None:
    with pytest.raises(cn.UnsupportedError, match=r'choose a penalty by "cv"'):
        federation().fit(cn.Regression(l2="cv"), coreset=CORESET, solver=CKKS)
    with pytest.raises(cn.InputError, match='products must be "shares" or "ckks"'):
        cn.SecureGram(products="magic")  # type: ignore[arg-type]
