"""Secrets of secure phases are nowhere to be read: not on the wire, in runs, states, errors or logs."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.privacy import pairwise, primitives
from colonnade.privacy.identities import RehearsedPair, identities_here
from harness import watch
from secure_trial import Entropy, Wire, forms_of, made_parties

NAMES = ("party1", "party2", "party3")


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """Record all that is agreed on between parties or derived, beside the entropy that was drawn."""
    found: list[bytes] = []
    for owner, name in ((RehearsedPair, "agreed"), (primitives, "derive"), (pairwise, "derive")):
        original = getattr(owner, name)

        def recorded(*given: Any, original: Any = original) -> bytes:
            found.append(original(*given))
            return found[-1]

        monkeypatch.setattr(owner, name, recorded)
    return found


def test_no_secret_of_gram_mode_clustering_delivery_or_evaluation_shows(
    derived: list[bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entropy, texts, flips = Entropy(), [], [0]

    def watch(_sender: str, _receiver: str, data: bytes) -> bytes:
        texts.append(data)
        for session in wire.sessions.values():
            texts.append(f"{session.state!r} {session!r} {session._data!r} {session._data.identity!r}".encode())
            texts.append(f"{session.state.secret!r} {vars(session.state)}".encode())
        if flips[0] and b"PairAgreement" in data:
            return data[:-1] + bytes([data[-1] ^ 1])
        return data

    wire = Wire(watch)
    federation = cn.Federation(made_parties(identities=identities_here(NAMES, entropy)), transport=wire)
    gram, lloyd = cn.SecureGram(), cn.SecureLloyd()
    ridge = federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(20), solver=gram)
    clusters = federation.fit(cn.KMeans(n_clusters=2, n_starts=1), sampler=cn.ImportanceSampling(20), solver=lloyd)
    federation.deliver(ridge.model, "party2", rows=[1, 2, 3])
    federation.evaluate(ridge.model, by="party3")
    runs: list[cn.Run[Any]] = [ridge, clusters]
    for number, run in enumerate(runs):
        texts += [path.read_bytes() for path in Path(run.save(tmp_path / str(number))).iterdir()]
    flips[0] = 1
    for again in (
        lambda: federation.fit(cn.Regression(), coreset=ridge.coreset, solver=gram),
        lambda: federation.deliver(ridge.model, "party1"),
    ):
        with pytest.raises(cn.ColonnadeError) as caught:
            again()
        texts += [repr(caught.value).encode(), str(caught.getrepr(showlocals=False)).encode()]
    texts += [caplog.text.encode(), federation.ledger.to_json().encode(), repr(federation).encode()]
    assert len(entropy.drawn) == 4 + 6 * 3, "signing keys of three parties and the server, and three keys a phase"
    assert len(derived) > 20
    for secret in {*entropy.drawn, *derived}:
        for form in forms_of(secret):
            assert not any(form in text for text in texts)


def test_secrets_end_with_their_phase() -> None:
    federation = cn.Federation(made_parties())
    model, sessions = cn.LinearModel(np.ones(6), 1.0, federation.roster.feature_names), watch(federation)
    jobs: list[Callable[[], object]] = [
        lambda: federation.fit(cn.Regression(l2=0.1), sampler=cn.ImportanceSampling(20), solver=cn.SecureGram()),
        lambda: federation.deliver(model, "party2"),
        lambda: federation.evaluate(model, by="party1"),
    ]
    for job in jobs:
        job()
        for session in sessions.values():
            assert session.state.secret is None
            assert session.state.learning is None


def test_an_encrypted_text_opens_for_its_receiver_and_transcript_alone() -> None:
    secrets = [pairwise.Secret(bytes([number]) * 32) for number in (1, 2, 3)]
    keys = [secret.key for secret in secrets]
    encrypted = secrets[0].encrypt_for(b"a seed", 1, keys, b"t")
    assert secrets[1].decrypt_from("first", encrypted, 0, keys, b"t") == b"a seed"
    for opener, place, transcript in ((2, 0, b"t"), (1, 2, b"t"), (1, 0, b"other")):
        with pytest.raises(cn.RemoteProtocolError, match="an encrypted text of 'first' that was changed on the way"):
            secrets[opener].decrypt_from("first", encrypted, place, keys, transcript)
    for bit in range(8 * len(encrypted)):
        changed = bytearray(encrypted)
        changed[bit // 8] ^= 1 << bit % 8
        with pytest.raises(cn.RemoteProtocolError):
            secrets[1].decrypt_from("first", bytes(changed), 0, keys, b"t")
    assert secrets[1].encrypt_for(b"a seed", 0, keys, b"t") != encrypted, "each direction has a key of its own"
