"""The secure sum, whole: parties, transports that record, flip, swap and forget, and what comes out."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.catalogue import codec
from colonnade.contracts import Inbox, Outbox
from colonnade.kernels.per_row import numbers_in
from colonnade.ledger import SERVER
from colonnade.messages import Message
from colonnade.privacy.identities import PinnedIdentity, identities_here, signing_key
from colonnade.privacy.pairwise import split_keys
from colonnade.privacy.primitives import KeyPair
from colonnade.privacy.statements import CircleKeys
from colonnade.sampling.plain.messages import Scores
from colonnade.sampling.secure.messages import AskMaskedScores, AskPublicKey, MaskedScores, PublicKey
from colonnade.transports.loopback import Loopback
from harness import sessions_of, watch
from secure_trial import Entropy, Restarting, Wire, flip_message, forms_of

N, WIDTHS, SIZE = 300, (2, 3, 1), 12
MECHANISMS: tuple[Literal["plain", "secure"], ...] = ("plain", "secure")
NAMES = ("party1", "party2", "party3")
SECURE = cn.ImportanceSampling(SIZE, scores="secure")
DISTINCT = cn.ImportanceSampling(SIZE, draws="distinct", scores="secure")


def make_data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.standard_t(3, size=(N, sum(WIDTHS)))
    return X, X @ rng.normal(size=sum(WIDTHS)) + rng.normal(size=N)


def make_federation(transport: Any = Loopback, identities: Mapping[str, Any] | None = None) -> cn.Federation:
    X, y = make_data()
    parties = cn.split_columns(X, y, WIDTHS)
    for party in parties if identities is not None else ():
        party.identity = identities[party.name]  # type: ignore[index]
    return cn.Federation(parties, transport=transport)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("task", [cn.Regression(), cn.Regression(standardize=True), cn.KMeans(n_clusters=4)])
@pytest.mark.parametrize(("share", "draws"), [(0.0, "stratified"), (0.4, "stratified"), (0.0, "independent")])
def test_same_rows_as_plain_and_weights_to_a_millionth(task: Any, share: float, draws: Any, weighted: bool) -> None:
    X, y = make_data()
    weight = np.random.default_rng(1).uniform(0.01, 3, size=N) if weighted else None
    federation = cn.Federation(cn.split_columns(X, y, WIDTHS, weight=weight))
    split = cn.HoldOut(0.2) if weighted else None
    plain, secure = (
        federation.coreset(task, cn.ImportanceSampling(200, share, draws, scores=scores), split=split, seed=5)
        for scores in MECHANISMS
    )
    np.testing.assert_array_equal(plain.coreset.rows, secure.coreset.rows)
    np.testing.assert_allclose(secure.coreset.weights, plain.coreset.weights, rtol=1e-6)
    assert plain.ledger.units == secure.ledger.units


def test_the_result_does_not_depend_on_the_keys_and_the_bytes_do() -> None:
    recorded: list[list[bytes]] = []
    runs = []
    for seed in (1, 2):
        masked: list[bytes] = []
        recorded.append(masked)
        wire = Wire(lambda sender, _, data, masked=masked: (sender != SERVER and masked.append(data)) or data)  # type: ignore[misc]
        runs.append(make_federation(wire, identities_here(NAMES, Entropy(seed))).coreset(cn.Regression(), SECURE))
    assert runs[0].coreset.weights.tobytes() == runs[1].coreset.weights.tobytes()
    assert runs[0].ledger == runs[1].ledger
    first, second = ([data for data in each if b"MaskedScores" in data] for each in recorded)
    assert len(first) == len(second) == 3
    assert not set(first) & set(second)


SECRET_SAMPLERS = [
    SECURE,
    cn.ImportanceSampling(SIZE, totals="set", scores="secure"),
    cn.ImportanceSampling(SIZE, draws="committed", scores="secure"),
]


@pytest.mark.parametrize("task", [cn.Regression(), cn.KMeans(3)])
@pytest.mark.parametrize("sampler", SECRET_SAMPLERS, ids=str)
def test_no_plain_score_reaches_the_server(sampler: cn.ImportanceSampling, task: Any) -> None:
    """Neither as a float64, nor as the ring's number, nor as the whole number that was committed to, in any order."""
    received: list[bytes] = []
    wire = Wire(lambda sender, _, data: (sender != SERVER and received.append(data)) or data)  # type: ignore[func-returns-value]
    federation = make_federation(wire)
    run = federation.coreset(task, sampler, seed=2)
    assert "Scores" not in {entry.kind for entry in run.ledger}
    replies = [codec().decode(data) for data in received]
    masked = [reply for reply in replies if isinstance(reply, MaskedScores)]
    for session in wire.sessions.values():
        for rule in (task.score_rule(), run.rule):
            scores = session._data.scores(rule)[run.coreset.rows]
            for form in plain_forms(scores, exponent_of(federation, run.rule), masked[0].width):
                assert not any(form in data for data in received), "false alarms: 40 bits or more a form, below 1e-5"
    assert not any(isinstance(reply, Scores) for reply in replies)


def plain_forms(scores: np.ndarray, exponent: int, width: int) -> list[bytes]:
    """Write scores as they might leak."""
    forms = []
    for score in scores:
        forms += [np.float64(score).tobytes(), int(np.rint(np.ldexp(score, exponent))).to_bytes(8, "little")[:width]]
        for steps in (int(np.rint(np.ldexp(score, committed))) for committed in (57, 58, 59)):
            forms += [steps.to_bytes(8, "little"), steps.to_bytes(8, "big")]
    return forms


def exponent_of(federation: cn.Federation, rule: Any) -> int:
    from colonnade.kernels.masks import narrowest_ring

    largest = max(rule.bounds(card, federation.roster.n_rows).score for card in federation.roster.cards)
    ring = narrowest_ring(1 / federation.roster.n_rows, largest, len(federation.roster.cards))
    assert ring is not None
    return ring.exponent


def test_masks_never_repeat_over_runs_of_one_federation() -> None:
    """The same rows, the same scores, six runs: with fresh masks no masked number comes again."""
    received: list[bytes] = []
    wire = Wire(lambda sender, _, data: (sender != SERVER and received.append(data)) or data)  # type: ignore[func-returns-value]
    federation = make_federation(wire)
    for _ in range(6):
        federation.coreset(cn.Regression(), SECURE, seed=2)
    masked = [reply.masked for data in received if isinstance(reply := codec().decode(data), MaskedScores)]
    assert len(masked) == 18
    width = len(masked[0] or b"") // SIZE
    numbers = [each[i : i + width] for each in masked if each for i in range(0, len(each), width)]
    assert len(set(numbers)) == len(numbers), "false alarms: 216^2 / 2 pairs in a ring of 2^40 or more, below 1e-7"
    keys = [reply.key for data in received if isinstance(reply := codec().decode(data), PublicKey)]
    assert len(set(keys)) == len(keys) == 18


def test_masks_never_repeat_over_the_attempts_of_one_run() -> None:
    """A party loses its key twice: each attempt masks the same scores anew, with other keys."""
    sent: list[Message] = []

    class Recording(Restarting):
        def exchange(self, outbox: Outbox) -> Inbox:
            inbox = super().exchange(outbox)
            sent.extend(reply for reply in inbox.values() if isinstance(reply, MaskedScores | PublicKey))
            return inbox

    make_federation(Recording("AskMaskedScores", times=2)).coreset(cn.Regression(), SECURE, seed=2)
    masked = [reply.masked for reply in sent if isinstance(reply, MaskedScores) and reply.masked]
    keys = [reply.key for reply in sent if isinstance(reply, PublicKey)]
    assert (len(masked), len(keys)) == (2 + 2 + 3, 9)
    width = len(masked[0]) // SIZE
    numbers = [each[i : i + width] for each in masked for i in range(0, len(each), width)]
    assert len(set(numbers)) == len(numbers), "false alarms: 84^2 / 2 pairs in a ring of 2^40, below 1e-8"
    assert len(set(keys)) == 9


def outcome(meddle: Callable[[str, str, bytes], bytes], task: Any = None) -> str:
    """Run over a meddled wire; name the error, or fail if a coreset came out."""
    federation = make_federation(Wire(meddle))
    with pytest.raises(cn.ColonnadeError) as caught:
        federation.coreset(task or cn.Regression(), SECURE, seed=2)
    return type(caught.value).__name__


def messages_of_a_run(sampler: cn.ImportanceSampling = SECURE) -> list[bytes]:
    seen: list[bytes] = []
    federation = make_federation(Wire(lambda _s, _r, data: seen.append(data) or data))  # type: ignore[func-returns-value]
    federation.coreset(cn.Regression(), sampler, seed=2)
    return seen


HELLO, OPENING = 6, 6
MESSAGES = OPENING + 6 * 5


@pytest.mark.parametrize("number", range(HELLO, HELLO + MESSAGES))
def test_a_flipped_bit_is_an_error_and_never_another_coreset(number: int) -> None:
    """In every message of the run, its sheet and those before the secure sum included; bits of a fixed seed."""
    length = 8 * len(messages_of_a_run()[number])
    for bit in np.random.default_rng(number).choice(length, size=4, replace=False):
        outcome(flip_message(number, int(bit)))


OTHER_DRAWS = [
    cn.ImportanceSampling(SIZE, draws="committed", scores="secure"),
    cn.ImportanceSampling(SIZE, totals="set", scores="secure"),
]


@pytest.mark.parametrize("sampler", OTHER_DRAWS, ids=str)
@pytest.mark.parametrize("n_flips", [2, pytest.param(12, marks=pytest.mark.slow(sampled=False))])
def test_a_flipped_bit_of_other_draws_is_an_error_or_changes_nothing(
    sampler: cn.ImportanceSampling, n_flips: int
) -> None:
    """In every message, the hello included: nothing that a flipped bit spoils is asked for again."""
    expected = make_federation().coreset(cn.Regression(), sampler, seed=2).coreset
    messages = messages_of_a_run(sampler)
    kinds = {codec().decode(data).kind for data in messages}
    assert {"PublicKey", "AskMaskedScores", "MaskedScores", "AskAgreement", "Agreement", "Card"} < kinds
    assert kinds & {"DrawnRows", "CommittedRows"}
    errors, unchanged = 0, []
    for number, data in enumerate(messages):
        for bit in np.random.default_rng([number, n_flips]).choice(8 * len(data), size=n_flips, replace=False):
            try:
                meddled = make_federation(Wire(flip_message(number, int(bit))))
                found = meddled.coreset(cn.Regression(), sampler, seed=2).coreset
            except cn.ColonnadeError:
                errors += 1
                continue
            unchanged.append(codec().decode(data).kind)
            assert found.rows.tobytes() == expected.rows.tobytes()
            assert found.weights.tobytes() == expected.weights.tobytes()
    assert set(unchanged) <= {"Card"}
    assert errors > 0.8 * n_flips * len(messages)


OPENED = HELLO + OPENING


@pytest.mark.slow
@pytest.mark.parametrize("number", [OPENED, OPENED + 1, *range(OPENED + 6, OPENED + 8), OPENED + 25])
def test_every_single_bit_of_short_messages_counts(number: int) -> None:
    for bit in range(8 * len(messages_of_a_run()[number])):
        outcome(flip_message(number, bit))


@pytest.mark.parametrize("guarded", [True, False], ids=["by its sheet", "by the others"])
def test_a_flipped_view_is_noticed_too(guarded: bool) -> None:
    """A party knows its units from the sheet; where it does not look, its view is not that of the others."""
    X, y = make_data()

    def other_units(_sender: str, receiver: str, data: bytes) -> bytes:
        if receiver != "party2" or b"UseFrame" not in data:
            return data
        session = wire.sessions["party2"]
        session.state = session.state if guarded else replace(session.state, route=None)
        return codec().encode(msgspec.structs.replace(codec().decode(data), scaling="scaled"))

    wire = Wire(other_units)
    federation = cn.Federation(cn.split_columns(X, y, WIDTHS), transport=wire)
    error, match = (
        (cn.LocalProtocolError, "'party2' did not answer UseFrame: the job sheet says standard .* scaling = scaled")
        if guarded
        else (cn.RemoteProtocolError, "'party2' sent a PublicKey with other row weights or units")
    )
    with pytest.raises(error, match=match):
        federation.coreset(cn.Regression(standardize=True), SECURE)


def swap(change: Callable[[AskMaskedScores], AskMaskedScores], victim: str = "party2") -> Any:
    def meddle(sender: str, receiver: str, data: bytes) -> bytes:
        if sender != SERVER or receiver != victim or b"AskMaskedScores" not in data:
            return data
        request = codec().decode(data)
        assert isinstance(request, AskMaskedScores)
        return codec().encode(change(request))

    return meddle


def with_key(request: AskMaskedScores, index: int, key: bytes) -> AskMaskedScores:
    keys = [*split_keys(request.keys.keys)]
    keys[index] = key
    return msgspec.structs.replace(request, keys=CircleKeys(b"".join(keys), request.keys.signed))


def with_keys(request: AskMaskedScores, places: Sequence[int], signed: Sequence[int]) -> AskMaskedScores:
    """Relay the keys at these places, and these signatures."""
    keys = [split_keys(request.keys.keys)[place] for place in places]
    relayed = CircleKeys(b"".join(keys), tuple(request.keys.signed[place] for place in signed))
    return msgspec.structs.replace(request, keys=relayed)


def test_a_server_that_puts_its_own_key_in_anothers_place_is_caught() -> None:
    mallory = KeyPair(b"m" * 32).public
    for index in (0, 2):
        swapped = swap(lambda r, i=index: with_key(r, i, mallory))  # type: ignore[misc]
        federation = make_federation(Wire(swapped))
        with pytest.raises(
            cn.LocalProtocolError, match=f"a key for 'party{index + 1}' that 'party{index + 1}' did not"
        ):
            federation.coreset(cn.Regression(), SECURE)


def test_a_server_that_leaves_parties_out_or_invents_some_is_caught() -> None:
    """With fewer keys a party's scores would hide among fewer; with invented ones, among nobody's."""
    fewer = swap(lambda r: with_keys(r, (0, 1), (0, 1)))
    more = swap(lambda r: with_keys(r, (0, 1, 2, 0), (0, 1, 2, 0)))
    unsigned = swap(lambda r: with_keys(r, (0, 1, 2), (0, 1)))
    twice = swap(lambda r: with_keys(r, (2, 1, 2), (2, 1, 2)))
    for meddle, what in (
        (fewer, "2 keys, but its owner pinned 3"),
        (more, "4 keys"),
        (unsigned, "signatures on 2 keys where 3 are due"),
        (twice, "did not sign"),
    ):
        federation = make_federation(Wire(meddle))
        with pytest.raises(cn.LocalProtocolError, match=what):
            federation.coreset(cn.Regression(), SECURE)


def test_an_old_key_of_the_party_itself_only_starts_the_sum_again() -> None:
    """The server repeats a key that the party did sign, but holds no longer: it masks nothing with it."""
    asked: list[AskMaskedScores] = []

    def keep(sender: str, receiver: str, data: bytes) -> bytes:
        request = codec().decode(data)
        if sender == SERVER and receiver == "party2" and isinstance(request, AskMaskedScores):
            asked.append(request)
            if len(asked) == 1:  # the keys of this attempt are relayed only after the party has made another
                assert isinstance(wire.sessions["party2"].answer(AskPublicKey()), PublicKey)
        return data

    wire = Wire(keep)
    run = make_federation(wire).coreset(cn.Regression(), SECURE, seed=2)
    assert len(asked) == 2
    expected = make_federation().coreset(cn.Regression(), SECURE, seed=2)
    assert run.coreset.weights.tobytes() == expected.coreset.weights.tobytes()


@pytest.mark.parametrize(
    ("sampler", "kind"),
    [
        *((SECURE, kind) for kind in ("AskPublicKey", "AskMaskedScores", "AskAgreement")),
        *((DISTINCT, kind) for kind in ("AskPublicKey", "AskMaskedLogs", "AskAgreement")),
    ],
)
def test_a_party_that_restarts_inside_the_phase_changes_nothing(sampler: cn.ImportanceSampling, kind: str) -> None:
    restarting = Restarting(kind, times=2)
    run = make_federation(restarting).coreset(cn.Regression(), sampler, seed=2)
    expected = make_federation().coreset(cn.Regression(), sampler, seed=2)
    assert restarting.restarts >= 1
    assert run.coreset.rows.tobytes() == expected.coreset.rows.tobytes()
    assert run.coreset.weights.tobytes() == expected.coreset.weights.tobytes()


def test_a_party_that_restarts_for_ever_is_an_error() -> None:
    with pytest.raises(cn.RemoteProtocolError, match="'party3' lost its key 5 times") as caught:
        make_federation(Restarting("AskMaskedScores", times=99)).coreset(cn.Regression(), SECURE)
    assert caught.value.party == "party3"


def test_a_missing_party_aborts_and_the_next_run_is_sound() -> None:
    gone = True

    def meddle(sender: str, _receiver: str, data: bytes) -> bytes:
        if gone and sender == "party1" and b"MaskedScores" in data:
            raise cn.PartyUnreachableError("party1 is gone.", party="party1")
        return data

    federation = make_federation(Wire(meddle))
    with pytest.raises(cn.PartyUnreachableError):
        federation.coreset(cn.Regression(), SECURE, seed=2)
    gone = False
    assert len(federation.coreset(cn.Regression(), SECURE, seed=2).coreset) == SIZE


def test_a_party_that_masks_something_else_is_noticed() -> None:
    """It can lie about its scores, but a sum that scores cannot have is an error."""
    federation = make_federation()
    scores = np.zeros(N)
    scores[:2] = 7.0, -5.0  # so that the total is in bounds
    sessions_of(federation)["party2"]._data._scores[cn.Regression().score_rule()] = numbers_in(scores)
    with pytest.raises(cn.RemoteProtocolError, match="outside the range that scores have"):
        federation.coreset(cn.Regression(), SECURE)


def test_without_an_identity_a_party_takes_part_in_no_job() -> None:
    """It cannot tell who wrote the sheet, or who drew which rows: neither where scores are secret nor where plain."""
    pinned = identities_here(NAMES, Entropy())
    federation = make_federation(identities={**pinned, "party2": None})
    for sampler in (SECURE, cn.ImportanceSampling(5)):
        with pytest.raises(cn.InputError, match="'party2' did not answer OpenJob: it has no identity and no pins"):
            federation.coreset(cn.Regression(), sampler)


def test_parties_whose_pins_differ_do_not_sum() -> None:
    seeds = {name: name.encode().ljust(32) for name in NAMES}
    pins = {name: signing_key(seed) for name, seed in seeds.items()}
    wrong = {**pins, "party1": signing_key(b"?" * 32)}
    people = {name: PinnedIdentity(name, seeds[name], pins, Entropy(i)) for i, name in enumerate(NAMES)}
    people["party3"] = PinnedIdentity("party3", seeds["party3"], wrong, Entropy(9))
    with pytest.raises(cn.LocalProtocolError, match=r"'party3' did not answer AskMaskedScores.*'party1' did not sign"):
        make_federation(identities=people).coreset(cn.Regression(), SECURE)


def test_two_parties_are_refused_and_told_why() -> None:
    X, y = make_data()
    federation = cn.Federation(cn.split_columns(X, y, [3, 3]))
    with pytest.raises(cn.InputError, match=r"subtracts its own scores.*allow_two_parties=True") as caught:
        federation.coreset(cn.Regression(), SECURE)
    assert "party1 and party2" in str(caught.value)
    assert len(federation.ledger) == 4, "only the hello round: refused before anything was sent"
    allowed = cn.ImportanceSampling(SIZE, scores="secure", allow_two_parties=True)
    assert len(federation.coreset(cn.Regression(), allowed).coreset) == SIZE


def test_one_party_has_nobody_to_hide_among() -> None:
    X, y = make_data()
    with pytest.raises(cn.InputError, match="With one party, party1"):
        cn.Federation(cn.split_columns(X, y, [6])).coreset(cn.Regression(), SECURE)


def test_scores_takes_two_words() -> None:
    with pytest.raises(cn.InputError, match=r'scores must be "plain" or "secure", got \'hidden\''):
        cn.ImportanceSampling(5, scores="hidden")  # type: ignore[arg-type]


def test_rounded_scores_are_not_summed_in_secret() -> None:
    with pytest.raises(cn.InputError, match=r'round_scores=True and scores="secure" do not go together.*Leave out one'):
        cn.ImportanceSampling(SIZE, round_scores=True, scores="secure")
    assert cn.ImportanceSampling(SIZE, round_scores=True, scores="plain").round_scores


def test_a_policy_that_keeps_scores_still_takes_part() -> None:
    X, y = make_data()
    parties = cn.split_columns(X, y, WIDTHS)
    for party in parties:
        party.policy = cn.Policy(level="open", never=["scores"])
    federation = cn.Federation(parties)
    assert len(federation.coreset(cn.Regression(), SECURE).coreset) == SIZE
    with pytest.raises(cn.PolicyRefusedError):
        federation.coreset(cn.Regression(), cn.ImportanceSampling(SIZE))


def test_rows_of_very_unlike_weights_do_not_fit_a_ring() -> None:
    X, y = make_data()
    X[0], weight = 1e14, np.where(np.arange(N), 1.0, 1e-20)  # so far out that it is drawn all the same
    federation = cn.Federation(cn.split_columns(X, y, WIDTHS, weight=weight))
    with pytest.raises(cn.UnsupportedError, match=r'does not fit in 64 bits.*scores="plain"'):
        federation.coreset(cn.Regression(), cn.ImportanceSampling(2000, uniform_share=0.0, scores="secure"))


def test_a_ring_is_judged_without_looking_at_scores() -> None:
    """A refusal that depended on the party's scores would tell them, question by question."""
    seen: list[AskMaskedScores] = []

    def keep(_sender: str, receiver: str, data: bytes) -> bytes:
        if receiver == "party1" and isinstance(request := codec().decode(data), AskMaskedScores):
            seen.append(request)
            narrow = msgspec.structs.replace(request, exponent=request.exponent + 16)
            refusal = copy(wire.sessions["party1"]).answer(narrow)
            assert refusal.kind == "Refused"
            assert "a ring of" in str(refusal)
        return data

    wire = Wire(keep)
    make_federation(wire).coreset(cn.Regression(), SECURE)
    assert seen


def test_key_material_is_nowhere_to_be_read(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Not on the wire, in runs, states, errors or logs: the entropy that was drawn is looked for in all of them."""
    entropy, texts = Entropy(), []
    swapped = swap(lambda r: with_keys(r, (2, 1, 2), (2, 1, 2)))
    meddling = False

    def meddle(sender: str, receiver: str, data: bytes) -> bytes:
        texts.append(data)
        for session in wire.sessions.values():
            texts.append(f"{session.state!r} {session!r} {session._data!r} {session._data.identity!r}".encode())
            texts.append(str(vars(session.state)).encode())
        return bytes(swapped(sender, receiver, data)) if meddling else data

    wire = Wire(meddle)
    federation = make_federation(wire, identities_here(NAMES, entropy))
    run = federation.coreset(cn.Regression(), SECURE)
    texts += [path.read_bytes() for path in Path(run.save(tmp_path / "run")).iterdir()]
    meddling = True
    with pytest.raises(cn.LocalProtocolError) as caught:
        federation.coreset(cn.Regression(), SECURE)
    texts += [repr(caught.value).encode(), str(caught.getrepr(showlocals=False)).encode(), caplog.text.encode()]
    texts += [federation.ledger.to_json().encode(), repr(federation).encode()]
    assert len(entropy.drawn) == 4 + 2 * 3, "signing keys of three parties and the server, and three keys a run"
    for secret in entropy.drawn:
        for form in forms_of(secret):
            assert not any(form in text for text in texts)


def test_a_secret_does_not_outlive_its_job() -> None:
    federation = make_federation()
    sessions = watch(federation)
    federation.coreset(cn.Regression(), SECURE)
    assert all(session.state.secret is None for session in sessions.values())
    gone = Wire(lambda sender, _, data: data[:-1] if sender != SERVER and b"MaskedScores" in data else data)
    federation = make_federation(gone)
    sessions = watch(federation)
    with pytest.raises(cn.RemoteProtocolError):
        federation.coreset(cn.Regression(), SECURE)
    federation.coreset(cn.Regression(), cn.ImportanceSampling(5))
    assert all(session.state.secret is None for session in sessions.values())


def test_a_key_is_made_after_rows_are_drawn_and_used_once() -> None:
    again = []
    assert sessions_of(make_federation())["party1"].answer(AskPublicKey()).kind == "Refused", "no rows were drawn"

    def repeat(_sender: str, receiver: str, data: bytes) -> bytes:
        request = codec().decode(data)
        if receiver == "party1" and request.kind == "AskAgreement":
            again.append(wire.sessions["party1"].answer(asked[0]))
        if receiver == "party1" and isinstance(request, AskMaskedScores):
            asked.append(request)
        return data

    asked: list[AskMaskedScores] = []
    wire = Wire(repeat)
    make_federation(wire).coreset(cn.Regression(), SECURE)
    assert [reply.kind for reply in again] == ["Refused"]
