"""Gram mode by shares: what the server saw, and what meddling, restarts and odd requests do."""

from functools import partial
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.kernels.gram import local_basis
from colonnade.kernels.shares import to_limbs
from colonnade.ledger import SERVER
from colonnade.messages import sendable_floats
from colonnade.privacy.identities import identities_here
from colonnade.privacy.pairwise import split_keys
from colonnade.privacy.primitives import KeyPair
from colonnade.privacy.statements import CircleKeys
from colonnade.solvers.gram.shares.messages import AskGramShares, AskSealedSeeds, GramShares, SealedSeeds
from colonnade.tasks.jobs import learn
from colonnade.transports.loopback import Loopback
from harness import play
from secure_trial import Entropy, Recording, Restarting, Wire, flip_message, float_forms, made_parties, numbers_in

GRAM = cn.SecureGram()
NAMES = ("party1", "party2", "party3")
RIDGE = cn.Regression(l2=0.1)


def federation(transport: Any = Loopback, **options: Any) -> cn.Federation:
    return cn.Federation(made_parties(**options), transport=transport)


CORESET = federation().coreset(RIDGE, cn.ImportanceSampling(40), seed=3).coreset


def fit(transport: Any = Loopback, **options: Any) -> cn.Run[Any]:
    return federation(transport, **options).fit(RIDGE, coreset=CORESET, solver=GRAM, seed=1)


def bits(model: Any) -> bytes:
    return bytes(model.coef_.tobytes() + np.float64(model.intercept_).tobytes())


# What the server saw


def test_no_row_label_or_score_reaches_the_server() -> None:
    """Neither as a float64, nor in the units they are shared in, nor as a limb, nor among decoded numbers."""
    wire = Recording()
    parties = federation(wire)
    run = parties.fit(RIDGE, sampler=cn.ImportanceSampling(40, scores="secure"), solver=GRAM, seed=3)
    assert {entry.kind for entry in run.ledger if entry.sender != SERVER}.isdisjoint({"Columns", "Scores"})
    weights = run.coreset.weights / run.coreset.weights.max()
    told = np.concatenate([numbers_in(reply) for reply in wire.replies()])
    for session in wire.sessions.values():
        rows = session._data.table.take(run.coreset.rows)
        basis = local_basis(rows, weights)
        scores = session._data.scores(RIDGE.score_rule())[run.coreset.rows]
        forms: set[bytes] = set()
        for values in (rows, scores, rows - basis.mean, basis.directions, np.sqrt(weights)[:, None] * rows):
            forms |= float_forms(values)
            assert not np.isin(values[values != 0], told).any()
        limbs = to_limbs(basis.directions)[:, 0]
        forms |= {limbs[i, j].tobytes() for i, j in np.ndindex(limbs.shape)}
        assert not [form for form in forms if any(form in data for data in wire.received)]


def test_shares_differ_from_run_to_run_and_the_model_does_not() -> None:
    shares, models = [], []
    for seed in (1, 2):
        wire = Recording()
        run = fit(wire, identities=identities_here(NAMES, Entropy(seed)))
        shares.append([reply.share for reply in wire.replies() if isinstance(reply, GramShares)])
        models.append(bits(run.model))
    assert models[0] == models[1] == bits(fit().model)
    words = [share[i : i + 8] for each in shares for share in each if share for i in range(0, len(share), 8)]
    assert len(set(words)) == len(words), "false alarms: 1,120^2 / 2 pairs of 64-bit words, below 1e-13"


# Meddling and restarts


def test_a_flipped_bit_is_an_error_and_never_another_model() -> None:
    """Three bits of every message after the hello, drawn from a fixed seed."""
    wire = Recording()
    fit(wire)
    n_messages = len(wire.received) + len(wire.sent)
    rng = np.random.default_rng(0)
    for number in range(6, n_messages):
        for bit in rng.integers(2**20, size=3):
            with pytest.raises(cn.ColonnadeError):
                fit(Wire(flip_message(number, int(bit))))


def meddled(kind: type[Any], change: Any, victim: str = "party2") -> Any:
    def meddle(sender: str, receiver: str, data: bytes) -> bytes:
        message = codec().decode(data)
        if victim in (sender, receiver) and isinstance(message, kind):
            return codec().encode(change(message))
        return data

    return Wire(meddle)


def test_a_server_that_puts_its_own_key_between_is_caught() -> None:
    mallory = KeyPair(b"m" * 32).public

    def swap(request: Any, place: int) -> Any:
        keys = [*split_keys(request.keys.keys)]
        keys[place] = mallory
        return msgspec.structs.replace(request, keys=CircleKeys(b"".join(keys), request.keys.signed))

    for kind, victim, place in ((AskSealedSeeds, "party1", 1), (AskGramShares, "party2", 0)):
        with pytest.raises(
            cn.LocalProtocolError, match=f"a key for 'party{place + 1}' that 'party{place + 1}' did not"
        ):
            fit(meddled(kind, partial(swap, place=place), victim))


def test_a_key_of_another_that_is_not_checked_changes_what_is_signed() -> None:
    """Nobody but the one that deals the seed checks it: where others are told another one, their masks are others'."""
    mallory = KeyPair(b"m" * 32).public

    def swap(request: AskGramShares) -> AskGramShares:
        keys = (*split_keys(request.keys.keys)[:2], mallory)
        return msgspec.structs.replace(request, keys=CircleKeys(b"".join(keys), request.keys.signed))

    with pytest.raises(cn.ColonnadeError, match="an encrypted text of 'party1' that was changed on the way"):
        fit(meddled(AskGramShares, swap))


def test_a_server_that_swaps_encrypted_seeds_is_caught() -> None:
    boxes: list[bytes] = []

    def swap(request: AskGramShares) -> AskGramShares:
        """Give a box to the next party that is asked."""
        boxes.append(request.box)
        return msgspec.structs.replace(request, box=boxes[-2] if len(boxes) > 1 else request.box)

    swapped = meddled(AskGramShares, swap, SERVER)
    with pytest.raises(cn.LocalProtocolError, match=r"an encrypted text of .* that was changed on the way"):
        fit(swapped)


@pytest.mark.parametrize("weights", ["one row", "two rows", "negative", "too few"])
def test_weights_that_single_out_rows_are_refused(weights: str) -> None:
    """A server that could choose weights would read a row as the Gram matrix of that row alone."""
    size = len(CORESET)
    chosen = {
        "one row": np.where(np.arange(size) == 5, 1.0, 1e-9),
        "two rows": (np.arange(size) < 2).astype(np.float64),
        "negative": -np.ones(size),
        "too few": np.ones(3),
    }[weights]
    asked = meddled(AskGramShares, lambda r: msgspec.structs.replace(r, weights=sendable_floats(chosen)))
    with pytest.raises(cn.ColonnadeError, match=r"would nearly show the rows|negative value|an array of shape"):
        fit(asked)


def test_numbers_of_columns_that_multiply_are_refused_before_masks_are_made() -> None:
    asked = meddled(AskGramShares, lambda r: msgspec.structs.replace(r, n_columns=(2**20, r.n_columns[1], 2**20)))
    with pytest.raises(cn.LocalProtocolError, match="the job sheet says"):
        fit(asked)
    parties = federation(asked)
    with pytest.raises(cn.InputError, match="half as many is the most"):
        play(parties, learn(RIDGE, CORESET, GRAM, None, parties.roster, 1))


@pytest.mark.parametrize("columns", [(2, 3), (2, 3, 1), (2, -3, 2), (2, 3, 3)])
def test_numbers_of_columns_are_checked(columns: tuple[int, ...]) -> None:
    asked = meddled(AskGramShares, lambda r: msgspec.structs.replace(r, n_columns=columns), victim="party3")
    with pytest.raises(cn.LocalProtocolError, match="columns"):
        fit(asked)


def test_a_party_that_shares_something_else_is_found_out() -> None:
    def other(reply: GramShares) -> GramShares:
        return msgspec.structs.replace(reply, factors=sendable_floats(2 * reply.factors))

    with pytest.raises(cn.ColonnadeError, match="a signature of 'party2' on something else"):
        fit(meddled(GramShares, other))


@pytest.mark.parametrize("kind", ["AskPairKey", "AskSealedSeeds", "AskGramShares", "AskPairAgreement"])
def test_a_party_that_restarts_inside_the_phase_changes_nothing(kind: str) -> None:
    restarting = Restarting(kind, "party1", times=2)
    assert bits(fit(restarting).model) == bits(fit().model)
    assert restarting.restarts >= 1


def test_a_party_that_restarts_for_ever_is_an_error() -> None:
    with pytest.raises(cn.RemoteProtocolError, match="'party3' lost its key 5 times"):
        fit(Restarting("AskGramShares", times=99))


def test_encrypted_seeds_must_be_as_many_as_the_others() -> None:
    fewer = meddled(SealedSeeds, lambda reply: SealedSeeds(reply.boxes[:1]), "party1")
    with pytest.raises(cn.RemoteProtocolError, match="other than one encrypted seed of 48 bytes for each other party"):
        fit(fewer)
