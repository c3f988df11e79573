"""A party alone, where others' numbers are masked: what it is sent, what its lies do, and what it has with the server.

In one process: a party's owner sees what its session is sent, whatever brings it.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.contracts import Inbox, Outbox
from colonnade.kernels.arrays import Floats
from colonnade.kernels.masks import Words
from colonnade.kernels.shares import HIGH_BITS, LIMBS, LOW_BITS, unpack_words
from colonnade.messages import Message, Reveals
from colonnade.privacy.pair_keys import view_digest, with_keys
from colonnade.privacy.pairwise import Secret, share_words
from colonnade.protocol.session import PartySession
from colonnade.solvers.gram.shares import party as gram_party
from colonnade.solvers.gram.shares.messages import PURPOSE, STAR, AskGramShares, GramShares, matrix_words
from hostile_trial import columns_of
from secure_trial import float_forms, made_parties, numbers_in

CURIOUS, OTHERS = "party2", ("party1", "party3")
N_ROWS, EVERY = 300, np.arange(300)
RIDGE, CLUSTERS = cn.Regression(l2=0.1), cn.KMeans(n_clusters=2, n_starts=1)
SECURE = cn.ImportanceSampling(40, scores="secure")


class Listening:
    """A loop-back that keeps what a party is sent, and what the others reply; `before` sees each request first."""

    def __init__(self, before: Callable[[PartySession, Message], None] = lambda _session, _request: None) -> None:
        self._before, self._codec = before, codec()
        self.heard: list[Message] = []
        self.replies: dict[str, list[Message]] = {name: [] for name in OTHERS}

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Listening":
        self.sessions = sessions
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        if CURIOUS in outbox:
            self.heard.append(outbox[CURIOUS])
            self._before(self.sessions[CURIOUS], outbox[CURIOUS])
        inbox = {name: self.sessions[name].answer(request) for name, request in outbox.items()}
        for name in self.replies.keys() & inbox.keys():
            self.replies[name].append(inbox[name])
        return inbox

    @property
    def sent(self) -> bytes:
        """All that the party was sent, as it travels."""
        return b"".join(map(self._codec.encode, self.heard))

    def told(self) -> set[Reveals]:
        """What the party was told, beside names and counts of columns."""
        return {kind for request in self.heard for kind in request.reveals()} - {Reveals.NOTHING, Reveals.SCHEMA}

    def masked(self) -> list[bytes]:
        """What the others sent under masks."""
        names = ("masked", "share", "blocks")
        words = (getattr(each, name, None) for replies in self.replies.values() for each in replies for name in names)
        return [each for each in words if isinstance(each, bytes) and each]


def model_of(task: Any) -> Any:
    """Learn a model elsewhere, so that nothing of how it was learned is heard."""
    return cn.Federation(made_parties()).fit(task, sampler=cn.AllRows()).model


def parts_of(model: Any) -> list[Floats]:
    """Give the others' parts of a model's predictions: products, or squared distances to each centre."""
    found, start = [], 0
    for party in made_parties():
        X = party.table.take(EVERY)[:, : len(party.table.feature_names)]
        here = slice(start, start + X.shape[1])
        start = here.stop
        if party.name == CURIOUS:
            continue
        if hasattr(model, "coef_"):
            found.append(X @ model.coef_[here])
        else:
            found += [np.square(X - center[here]).sum(axis=1) for center in model.cluster_centers_]
    return found


def scored(listening: Listening) -> list[Floats]:
    cn.Federation(made_parties(), transport=listening).coreset(RIDGE, SECURE, seed=3)
    return []


def gram(listening: Listening) -> list[Floats]:
    run = cn.Federation(made_parties(), transport=listening).fit(
        RIDGE, sampler=cn.UniformSampling(60), solver=cn.SecureGram(), seed=3
    )
    return parts_of(run.model)


def lloyd(listening: Listening) -> list[Floats]:
    run = cn.Federation(made_parties(), transport=listening).fit(
        CLUSTERS, sampler=cn.UniformSampling(60), solver=cn.SecureLloyd(), seed=3
    )
    return parts_of(run.model)


def delivered(to: str, task: Any) -> Callable[[Listening], list[Floats]]:
    def job(listening: Listening) -> list[Floats]:
        model = model_of(task)
        cn.Federation(made_parties(), transport=listening).deliver(model, to)
        return parts_of(model)

    return job


def evaluated(by: str, task: Any) -> Callable[[Listening], list[Floats]]:
    def job(listening: Listening) -> list[Floats]:
        model = model_of(task)
        cn.Federation(made_parties(), transport=listening).evaluate(model, by=by)
        return parts_of(model)

    return job


LEARNED = {Reveals.MODEL}
APPLIED = {Reveals.MODEL, Reveals.TOTALS}


@pytest.mark.parametrize(
    ("job", "told"),
    [
        pytest.param(scored, {Reveals.ROW_IDS, Reveals.TOTALS}, id="secure sums of scores"),
        pytest.param(gram, LEARNED, id="SecureGram by shares"),
        pytest.param(lloyd, LEARNED | {Reveals.PREDICTIONS, Reveals.ROW_IDS, Reveals.TOTALS}, id="SecureLloyd"),
        pytest.param(delivered("party1", RIDGE), APPLIED, id="a delivery to another party"),
        pytest.param(delivered("party1", CLUSTERS), APPLIED, id="a delivery of clusters to another party"),
        pytest.param(delivered(CURIOUS, RIDGE), APPLIED | {Reveals.PREDICTIONS}, id="a delivery"),
        pytest.param(evaluated("party1", RIDGE), APPLIED, id="an evaluation by another party"),
        pytest.param(evaluated(CURIOUS, RIDGE), APPLIED | {Reveals.PREDICTIONS}, id="an evaluation"),
    ],
)
def test_a_curious_party_is_sent_nothing_of_the_others(
    job: Callable[[Listening], list[Floats]], told: set[Reveals]
) -> None:
    """Neither their values, nor scores, nor their part of what is summed; nor, but to its receiver, anything masked."""
    listening = Listening()
    secrets = job(listening)
    assert listening.told() == told
    for name in OTHERS:
        data = listening.sessions[name]._data
        secrets += [data.table.take(EVERY), np.asarray(data.scores(RIDGE.score_rule()))]
    sent, numbers = listening.sent, np.concatenate([numbers_in(each) for each in listening.heard])
    values = np.concatenate([each.reshape(-1) for each in secrets])
    assert not np.isin(values[values != 0], numbers).any()
    assert not [form for form in float_forms(values) if form in sent]
    masked = listening.masked()
    assert masked, "there was something to hide"
    if Reveals.PREDICTIONS not in told or job is lloyd:
        assert not [words for words in masked if words in sent]


def test_the_receiver_of_a_delivery_learns_the_others_sum_and_no_part_of_it() -> None:
    """As the docs say: it takes its own part off."""
    model, federation = model_of(RIDGE), cn.Federation(made_parties())
    federation.deliver(model, CURIOUS)
    received = federation.received(CURIOUS)
    assert received is not None
    own = columns_of(made_parties()[1]) @ model.coef_[2:5]
    np.testing.assert_allclose(received.predictions - own - model.intercept_, np.sum(parts_of(model), axis=0))


# Lies under masks


class Liar:
    """Lets a party put random words under its masks; it signs them as if they were its numbers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._now, self._rng = False, np.random.default_rng(0)
        honest, shared = Secret.masked, gram_party.shared

        def masked(secret: Secret, numbers: Floats, *words: Any) -> Words:
            hidden = honest(secret, numbers, *words)
            return self._rng.integers(2**63, size=len(hidden), dtype=np.uint64) if self._now else hidden

        def blocks(*words: Any) -> tuple[bytes, bytes]:
            share, told = shared(*words)
            return (share, self._rng.bytes(len(told))) if self._now else (share, told)

        monkeypatch.setattr(Secret, "masked", masked)
        monkeypatch.setattr(gram_party, "shared", blocks)

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Liar":
        self.sessions = sessions
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        inbox = {}
        for name, request in outbox.items():
            self._now = name == CURIOUS
            inbox[name] = self.sessions[name].answer(request)
        return inbox


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (scored, "outside the range that scores have"),
        (gram, "cannot be those of unit columns"),
        (lloyd, "are not those of any rows"),
    ],
)
def test_a_lie_under_a_mask_that_no_data_have_is_an_error_of_all_who_masked(
    job: Callable[[Any], object], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(cn.RemoteProtocolError, match=rf"{why}.* [Oo]ne of them .* not show which\. Nothing") as error:
        job(Liar(monkeypatch))
    assert error.value.party is None, "nobody is blamed for it"


def test_a_lie_in_a_delivery_or_an_evaluation_is_as_false_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not held, and the docs say so: only the receiver has the sum, and by a refusal the server would learn of it."""
    model, plain = model_of(RIDGE), cn.Federation(made_parties())
    federation = cn.Federation(made_parties(), transport=Liar(monkeypatch))
    federation.deliver(model, "party1")
    received = federation.received("party1")
    assert received is not None
    assert not np.isclose(received.predictions, plain.predict(model)).any()
    assert federation.evaluate(model, by="party1").cost > 2 * plain.evaluate(model).cost


# The server and a party


def test_the_server_and_a_party_with_its_shares_read_the_rows_of_all_others() -> None:
    """Not held, and the docs say so: the party has the seeds of the others' masks, the server what is masked."""
    masks: list[list[Words]] = []

    def joins_forces(session: PartySession, request: Message) -> None:
        if isinstance(request, AskGramShares):
            state, data = session.state, session._data
            question, _ = gram_party._question(state, request, data)
            kept, parties = with_keys(state, request.keys, data, STAR), data.known().parties
            assert kept.secret is not None
            transcript = question.transcript(parties, kept.relayed, view_digest(state, data), PURPOSE)
            seed = gram_party.open_seed(state, kept, kept.secret, request.box, data)
            words = share_words(seed, transcript)
            masks.append([matrix_words(words, question, question.columns_of(place)) for place in range(3)])

    listening, parties = Listening(joins_forces), made_parties()
    run = cn.Federation(parties, transport=listening).fit(RIDGE, sampler=cn.AllRows(), solver=cn.SecureGram())
    assert run.disclosure.headline == "Nobody was shown features or labels of any row."
    for place in (0, 2):
        columns = columns_of(parties[place])
        (reply,) = [each for each in listening.replies[parties[place].name] if isinstance(each, GramShares)]
        words = unpack_words(reply.share or b"", columns.shape[1], LIMBS, N_ROWS) + masks[0][place]
        high, low = words.view(np.int64).astype(np.float64).transpose(1, 2, 0)
        directions = np.ldexp(high, -HIGH_BITS) + np.ldexp(low, -HIGH_BITS - LOW_BITS)
        np.testing.assert_allclose(directions @ reply.factors + reply.means, columns, rtol=1e-9)


def test_a_server_that_is_run_by_a_party_gets_no_shares() -> None:
    """So it takes two that join forces, and not one."""
    with pytest.raises(cn.InputError, match="party1"):
        cn.SecureGram().check(RIDGE, cn.Federation(made_parties()).roster, "party1")
