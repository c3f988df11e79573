"""A pinned party that sends what it likes in Gram mode by homomorphic encryption, and what it reads of the next one.

`party1` encrypts, `party2` multiplies and masks, `party1` decrypts. In place of its unit columns it sends

- large selectors: every slot holds one coordinate of `party2`, times 2^13, under a mask of 2^10 at most (correlation
  0.95 after one run, 0.995 after ten);
- a ciphertext whose second half is a constant: it comes back as the coordinates themselves, under no mask at all
  (correlation 1 - 2e-16 after one run).
"""

import struct
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import HANDLERS
from colonnade.contracts import Inbox, Outbox
from colonnade.kernels.arrays import Floats
from colonnade.kernels.gram import local_basis
from colonnade.privacy import ckks
from colonnade.privacy.pair_keys import phase_keys
from colonnade.protocol.session import PartyData, PartySession, PartyState
from colonnade.solvers.gram.ckks.messages import AskDecryptedProducts, AskEncryptedRows
from colonnade.solvers.gram.ckks.party import _statement
from secure_trial import made_parties

tenseal = pytest.importorskip("tenseal", reason="the extra he is not installed")

RIDGE, SOLVER = cn.Regression(l2=0.1), cn.SecureGram(products="ckks")
CORESET = cn.Federation(made_parties()).coreset(RIDGE, cn.ImportanceSampling(40), seed=3).coreset
PARTY, COLUMNS = "party1", 2
# 120 coordinates: chance correlations have a standard deviation of 0.09, and one in 50,000 is beyond this.
CHANCE = 0.38


class Hostile:
    """A loop-back in which `party1` sends other ciphertexts than are due, and keeps what comes back from `party2`."""

    def __init__(self, ciphertexts: Callable[[Any], tuple[bytes, ...]]) -> None:
        self._ciphertexts = ciphertexts
        self.seen: list[tuple[Any, tuple[bytes, ...]]] = []

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Hostile":
        self.sessions = dict(sessions)
        honest = self.sessions[PARTY]
        handlers = {handler.request: handler for handler in HANDLERS}
        for kind, answer in ((AskEncryptedRows, self._send), (AskDecryptedProducts, self._read)):
            handlers[kind] = replace(handlers[kind], answer=answer)
        data = honest._data
        self.sessions[PARTY] = PartySession(data.table, handlers.values(), honest._policy, data.identity).greeted()
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        return {party: self.sessions[party].answer(request) for party, request in outbox.items()}

    def _send(self, state: PartyState, request: AskEncryptedRows, data: PartyData) -> Any:
        state, reply = _honest(AskEncryptedRows)(state, request, data)
        kept = phase_keys(state)
        ciphertexts = self._ciphertexts(kept.kept.context)
        signature = data.identity.sign(_statement(PARTY, kept.transcript, b"rows", ciphertexts))
        return state, msgspec.structs.replace(reply, ciphertexts=ciphertexts, signature=signature)

    def _read(self, state: PartyState, request: AskDecryptedProducts, data: PartyData) -> Any:
        self.seen.append((phase_keys(state).kept.context, request.products[0]))
        return _honest(AskDecryptedProducts)(state, request, data)


def _honest(kind: Any) -> Any:
    return next(handler.answer for handler in HANDLERS if handler.request is kind)


def seen_in(n_runs: int, ciphertexts: Callable[[Any], tuple[bytes, ...]]) -> list[tuple[Any, tuple[bytes, ...]]]:
    seen = []
    for _ in range(n_runs):
        hostile = Hostile(ciphertexts)
        try:
            cn.Federation(made_parties(), transport=hostile).fit(RIDGE, coreset=CORESET, solver=SOLVER)
        except cn.ColonnadeError:
            pass  # what it did may show, but after it has read
        seen += hostile.seen
    return seen


def coordinates() -> Floats:
    weights = CORESET.weights / CORESET.weights.max()
    return local_basis(made_parties()[1].table.take(CORESET.rows), weights).directions


def correlation(guess: Floats) -> float:
    return float(np.corrcoef(guess.reshape(-1), coordinates().reshape(-1))[0, 1])


@pytest.mark.parametrize("n_runs", [1, 10])
def test_large_selectors(n_runs: int) -> None:
    def selectors(context: Any) -> tuple[bytes, ...]:
        return ckks.encrypt_matrix(context, np.full((40, COLUMNS), 2.0**13))

    found = [
        [np.array(tenseal.ckks_vector_from(context, each).decrypt()).reshape(-1, COLUMNS)[:40].mean(1) for each in got]
        for context, got in seen_in(n_runs, selectors)
    ]
    assert abs(correlation(np.mean(found, axis=0).T)) < CHANCE


def test_a_constant_in_the_second_half() -> None:
    ((context, got),) = seen_in(1, lambda context: (_second_half(context, 2**40),))
    assert abs(correlation(np.array([_moved(context, each) for each in got]).T)) < CHANCE


def _second_half(context: Any, constant: int) -> bytes:
    vector = tenseal.ckks_vector(context, [0.0] * 2048)
    words = _words(vector)
    words[1] = constant % np.array(_primes(2))[:, None]
    return _with_words(vector, words)


def _moved(context: Any, data: bytes) -> Floats:
    """Decrypt the second half of a ciphertext as if it were a text in the clear."""
    vector = tenseal.ckks_vector_from(context, data)
    words = _words(vector)
    zero = tenseal.ckks_vector(context, [0.0] * 2048) * ([1.0] * 2048)
    clear = np.stack([words[1], np.zeros_like(words[1])])
    moved = zero + tenseal.ckks_vector_from(context, _with_words(vector, clear))
    return np.array(moved.decrypt()).reshape(-1, COLUMNS)[:40].mean(1)


def _primes(count: int) -> list[int]:
    return [each.value() for each in tenseal.sealapi.CoeffModulus.Create(ckks.DEGREE, ckks.PRIMES)[:count]]


def _words(vector: Any) -> Any:
    ciphertext = vector.ciphertext()[0]
    n = ciphertext.size() * ciphertext.coeff_modulus_size() * ckks.DEGREE
    return np.array([ciphertext[i] for i in range(n)], np.uint64).reshape(ciphertext.size(), -1, ckks.DEGREE)


def _with_words(vector: Any, words: Any) -> bytes:
    """Write a ciphertext with these residues, as SEAL does without compression."""
    ciphertext = vector.ciphertext()[0]
    flat = _framed(struct.pack("<Q", words.size) + words.astype("<u8").tobytes())
    head = struct.pack("<4Q?QQQd", *ciphertext.parms_id(), True, 2, ckks.DEGREE, words.shape[1], ciphertext.scale)
    data = _framed(head + struct.pack("<Q", 1) + flat)
    return b"\x0a\x02\x80\x10\x12" + _varint(len(data)) + data + b"\x19" + struct.pack("<d", ciphertext.scale)


def _framed(data: bytes) -> bytes:
    return struct.pack("<HBBBBHQ", 0xA15E, 16, 4, 3, 0, 0, 16 + len(data)) + data


def _varint(number: int) -> bytes:
    return bytes([number & 127 | 128]) + _varint(number >> 7) if number > 127 else bytes([number])
