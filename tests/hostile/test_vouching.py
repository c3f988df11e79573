"""Servers that name rows to many parties, of which one has checked what all drew, and the others take its word.

That each compares what it was told with its neighbours would not do: a server could tell a victim and all its
neighbours the same, and something else to those beyond.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

import colonnade as cn
from colonnade.contracts import Inbox, Outbox
from colonnade.kernels.arrays import Rows
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.privacy.circles import NEAR
from colonnade.privacy.pair_keys import view_digest
from colonnade.protocol.session import PartySession
from colonnade.sampling.distinct.server import Distinct
from colonnade.sampling.plain.messages import AskScores, AskVouched, DrawnRows, Scores, Vouched
from colonnade.sampling.plain.server import Quotas
from colonnade.sampling.secure import server as secure_sums
from colonnade.sampling.secure.messages import AskMaskedLogs, MaskedScores
from colonnade.signing import SignedRows, VouchedRows, all_drawn, vouched_statement
from secure_trial import Restarting, made_parties

COUNT, N_ROWS = NEAR + 2, 400
NAMES = [f"party{number:02}" for number in range(COUNT)]
FIRST, VICTIM, FAR = NAMES[0], NAMES[9], NAMES[30]
RIDGE, PLAIN = cn.Regression(l2=0.1), cn.ImportanceSampling(200, scores="plain")
WAYS = {
    "plain": PLAIN,
    "rounded": cn.ImportanceSampling(200, scores="plain", round_scores=True),
    "distinct": cn.ImportanceSampling(200, scores="plain", draws="distinct", uniform_share=0.1),
    "distinct, rounded": cn.ImportanceSampling(200, scores="plain", draws="distinct", round_scores=True),
    "secure": cn.ImportanceSampling(200, scores="secure"),
    "secure, distinct": cn.ImportanceSampling(200, scores="secure", draws="distinct"),
}
# What a party tells before it scores rows that others drew.
BEFORE = {Reveals.SCHEMA, Reveals.TOTALS, Reveals.ROW_IDS}
Change = Callable[[str, Any], Any]


def many_parties(count: int = COUNT) -> list[cn.Party]:
    rng = np.random.default_rng(0)
    tables = rng.normal(size=(count, N_ROWS, 2))
    return [
        cn.Party(name, table, label=table @ [1.0, 2.0] + rng.normal(size=N_ROWS) if number == count - 1 else None)
        for number, (name, table) in enumerate(zip(NAMES, tables, strict=False))
    ]


class Meddling:
    """A server that asks something else than an honest one would, and keeps what it asked and heard."""

    def __init__(self, change: Change = lambda _party, request: request) -> None:
        self.change = change
        self.asked: list[tuple[str, Message]] = []
        self.told: list[tuple[str, Message]] = []

    def __call__(self, sessions: Mapping[str, PartySession]) -> "Meddling":
        self.sessions = sessions
        return self

    def exchange(self, outbox: Outbox) -> Inbox:
        """Change what is asked."""
        asked = {party: self.change(party, request) for party, request in outbox.items()}
        inbox = {party: self.sessions[party].answer(request) for party, request in asked.items()}
        self.asked += asked.items()
        self.told += inbox.items()
        return inbox

    def disclosed(self, party: str) -> set[Reveals]:
        """Collect what a party has told."""
        return {what for who, reply in self.told if who == party for what in reply.reveals()}

    def lists(self) -> list[VouchedRows]:
        """Give what parties were told to be drawn."""
        told = [getattr(each, "others", None) for _, each in self.asked]
        return [each for each in told if isinstance(each, VouchedRows)]


def told(*victims: str) -> Callable[[Callable[[VouchedRows], VouchedRows]], Change]:
    """Tell some parties other draws."""

    def of(change: Callable[[VouchedRows], VouchedRows]) -> Change:
        def changed(party: str, request: Any) -> Any:
            if party not in victims or not isinstance(getattr(request, "others", None), VouchedRows):
                return request
            return msgspec.structs.replace(request, others=change(request.others))

        return changed

    return of


def drew(drawn: VouchedRows, party: str, rows: Any) -> VouchedRows:
    """Say that a party drew these rows in place of as many others."""
    place = NAMES.index(party)
    numbers = drawn.rows.copy()
    (own,) = np.nonzero(numbers // N_ROWS == place)
    numbers[own] = place * N_ROWS + np.resize(rows, len(own))
    return msgspec.structs.replace(drawn, rows=sendable_rows(np.sort(numbers)))


def rows_of_its_choice(drawn: VouchedRows) -> VouchedRows:
    """Say that a party drew other rows."""
    return drew(drawn, FAR, [0, 1])


def other_rows_of_the_victim(drawn: VouchedRows) -> VouchedRows:
    """Say that the victim drew other rows."""
    return drew(drawn, VICTIM, [0, 1])


def rows_of_another(drawn: VouchedRows) -> VouchedRows:
    """Give a party's rows to the next: those of all are the same."""
    numbers = drawn.rows + N_ROWS * (drawn.rows // N_ROWS == NAMES.index(FAR))
    return msgspec.structs.replace(drawn, rows=sendable_rows(np.sort(numbers)))


def one_more(number: int) -> Callable[[VouchedRows], VouchedRows]:
    """Name a row that is none, or of nobody."""

    def change(drawn: VouchedRows) -> VouchedRows:
        return msgspec.structs.replace(drawn, rows=sendable_rows(np.sort([*drawn.rows[1:], number])))

    return change


def backwards(drawn: VouchedRows) -> VouchedRows:
    """Tell them in another order."""
    return msgspec.structs.replace(drawn, rows=sendable_rows(drawn.rows[::-1]))


def word_of(session: PartySession, rows: Rows) -> VouchedRows:
    """Let a party vouch for draws, whatever they are."""
    state, identity = session.state, session._data.known()
    view = view_digest(state, session._data.seen(state.view))
    return VouchedRows(rows, identity.sign(vouched_statement(identity.parties, state.sheet, view, rows)))


NOT_VOUCHED = f"draws that '{FIRST}' did not vouch for in this job"


@pytest.mark.parametrize("way", WAYS)
def test_rows_that_nobody_vouched_for_are_not_scored(way: str) -> None:
    wire = Meddling(told(VICTIM)(rows_of_its_choice))
    with pytest.raises(cn.ColonnadeError, match=NOT_VOUCHED):
        cn.Federation(many_parties(), transport=wire).coreset(RIDGE, WAYS[way], seed=1)
    assert wire.disclosed(VICTIM) <= BEFORE


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (rows_of_another, NOT_VOUCHED),
        (other_rows_of_the_victim, "other rows of this party than it drew"),
        (one_more(-1), "row ids that do not ascend"),
        (one_more(COUNT * N_ROWS), "row ids that do not ascend"),
        (one_more(1 << 62), "row ids that do not ascend"),
        (backwards, "row ids that do not ascend"),
        (lambda drawn: msgspec.structs.replace(drawn, rows=drawn.rows[:0]), "other rows of this party than it drew"),
    ],
)
def test_draws_are_told_as_they_were_vouched_for(change: Any, why: str) -> None:
    wire = Meddling(told(VICTIM)(change))
    with pytest.raises(cn.ColonnadeError, match=why):
        cn.Federation(many_parties(), transport=wire).coreset(RIDGE, PLAIN, seed=1)
    assert wire.disclosed(VICTIM) <= BEFORE


def test_parties_that_are_all_told_the_same_wrong_draws_score_none() -> None:
    wire = Meddling(told(*NAMES)(rows_of_its_choice))
    with pytest.raises(cn.ColonnadeError, match=NOT_VOUCHED):
        cn.Federation(many_parties(), transport=wire).coreset(RIDGE, PLAIN, seed=1)
    assert not [reply for _, reply in wire.told if isinstance(reply, Scores)]


def forged(place: int) -> Change:
    """Ask the first party to vouch for a draw that nobody signed."""

    def change(_: str, request: Any) -> Any:
        if not isinstance(request, AskVouched):
            return request
        others = [*request.others]
        others[place] = SignedRows(others[place].party, sendable_rows([0, 1]), others[place].signature)
        return AskVouched(tuple(others))

    return change


@pytest.mark.parametrize("place", [0, COUNT // 2, COUNT - 2])
def test_a_party_vouches_only_for_what_each_has_signed(place: int) -> None:
    wire = Meddling(forged(place))
    with pytest.raises(cn.ColonnadeError, match=f"rows that '{NAMES[place + 1]}' did not sign to have drawn"):
        cn.Federation(many_parties(), transport=wire).coreset(RIDGE, PLAIN, seed=1)
    assert not [reply for _, reply in wire.told if isinstance(reply, Vouched)]


@pytest.mark.parametrize("others", [lambda drawn: drawn[1:], lambda drawn: (*drawn, drawn[-1])])
def test_a_party_vouches_for_all_or_none(others: Any) -> None:
    def fewer(_: str, request: Any) -> Any:
        return AskVouched(others(request.others)) if isinstance(request, AskVouched) else request

    with pytest.raises(cn.ColonnadeError, match="draws of other parties than"):
        cn.Federation(many_parties(), transport=Meddling(fewer)).coreset(RIDGE, PLAIN, seed=1)


def test_the_word_of_one_job_is_worth_nothing_in_another() -> None:
    """The same draws, for a fit in place of a coreset: the sheet is another."""
    wire = Meddling()
    federation = cn.Federation(many_parties(), transport=wire)
    federation.coreset(RIDGE, PLAIN, seed=1)
    earlier = wire.lists()[0]
    wire.change = told(VICTIM)(lambda _: earlier)
    with pytest.raises(cn.ColonnadeError, match=NOT_VOUCHED):
        federation.fit(RIDGE, sampler=PLAIN, seed=1)
    assert earlier.rows.tobytes() == wire.lists()[-1].rows.tobytes()


@pytest.mark.parametrize("voucher", [NAMES[1], VICTIM, FAR])
def test_nobody_elses_word_counts(voucher: str) -> None:
    """Somebody of the server's choice vouches, were it the victim itself."""
    wire = Meddling()
    wire.change = told(VICTIM)(lambda drawn: word_of(wire.sessions[voucher], drawn.rows))
    with pytest.raises(cn.ColonnadeError, match=NOT_VOUCHED):
        cn.Federation(many_parties(), transport=wire).coreset(RIDGE, PLAIN, seed=1)
    assert wire.disclosed(VICTIM) <= BEFORE


def idle_others(wire: Meddling, rate: float) -> Change:
    """Ask for sums at this rate over rows of the server's choice, in draws that the first party vouches for.

    It says that it drew those rows; others, that they drew nothing, and to the victim that they drew one.
    """

    def change(party: str, request: Any) -> Any:
        if not isinstance(request, AskMaskedLogs):
            return request
        (own,) = (each.rows for who, each in wire.told if who == VICTIM and isinstance(each, DrawnRows))
        rows = np.union1d(np.arange(0, N_ROWS, 2), own)
        drawn = dict.fromkeys(NAMES, rows[:1] if party == VICTIM else rows[:0])
        drawn |= {FAR if party == FIRST else FIRST: rows, VICTIM: own}
        word = word_of(wire.sessions[FIRST], sendable_rows(all_drawn([*drawn.values()], N_ROWS)))
        return msgspec.structs.replace(request, size=len(rows), others=word, rate=rate)

    return change


@pytest.mark.parametrize(
    ("rate", "why", "answering"),
    [
        (0.9 / 5, "no rows of this party", {VICTIM}),
        (5e-324, "no rows of this party", {VICTIM}),
        (-5e-324, "no rows of this party", {VICTIM}),
        (0.0, "a draw of 1 rows, where 0 are due", {*NAMES} - {VICTIM}),
    ],
)
def test_others_that_draw_nothing_are_not_summed_whoever_vouches_that_they_drew(
    monkeypatch: pytest.MonkeyPatch, rate: float, why: str, answering: set[str]
) -> None:
    """Where less than a row is due to all, none and one are. Else the sums are the victim's scores, to 1e-8."""
    counts = tuple(int(name == VICTIM) for name in NAMES)
    monkeypatch.setattr(Distinct, "quotas", lambda *about: Quotas(0, counts, about[3]))
    monkeypatch.setattr(secure_sums, "_check_all_drew", lambda _: None)
    wire, sampler = Meddling(), cn.ImportanceSampling(200, 0.0, "distinct", scores="secure")
    wire.change = idle_others(wire, rate)
    with pytest.raises(cn.ColonnadeError, match=why):
        cn.Federation(many_parties(), transport=wire).coreset(RIDGE, sampler, seed=1)
    assert {party for party, reply in wire.told if isinstance(reply, MaskedScores)} == answering, "masks stay on"


@pytest.mark.parametrize("n_bytes", [0, 63, 65, 1 << 20])
@pytest.mark.parametrize("kind", [DrawnRows, Vouched])
def test_what_is_no_signature_is_not_relayed(kind: type[DrawnRows | Vouched], n_bytes: int) -> None:
    """It would go to all parties, and they would blame the server."""

    class Relay(Meddling):
        def exchange(self, outbox: Outbox) -> Inbox:
            inbox = {**super().exchange(outbox)}
            if isinstance(inbox.get(FIRST), kind):
                inbox[FIRST] = msgspec.structs.replace(inbox[FIRST], signature=bytes(n_bytes))
            return inbox

    wire = Relay()
    with pytest.raises(cn.RemoteProtocolError, match=f"'{FIRST}' sent a {kind.__name__} with a signature of") as caught:
        cn.Federation(many_parties(), transport=wire).coreset(RIDGE, PLAIN, seed=1)
    assert caught.value.party == FIRST
    assert isinstance(wire.told[-1][1], kind), "nobody was asked anything after that"


@pytest.mark.parametrize(
    ("party", "instead_of", "asked", "why"),
    [
        (VICTIM, AskScores, AskVouched(()), "AskScores would be next in this job, not AskVouched"),
        (FIRST, AskScores, AskVouched(()), "AskScores would be next in this job, not AskVouched"),
        (FIRST, AskVouched, AskScores(200, (), 0.0, 0), "AskVouched would be next in this job, not AskScores"),
    ],
)
def test_the_first_by_name_is_asked_once_and_nobody_else(
    party: str, instead_of: type[Message], asked: Message, why: str
) -> None:
    def change(who: str, request: Any) -> Any:
        return asked if who == party and isinstance(request, instead_of) else request

    with pytest.raises(cn.ColonnadeError, match=why):
        cn.Federation(many_parties(), transport=Meddling(change)).coreset(RIDGE, PLAIN, seed=1)


def vouched_of(request: AskScores) -> AskScores:
    """Put a list without anybody's word in the place of what others signed."""
    assert not isinstance(request.others, VouchedRows)
    rows = np.concatenate([each.rows for each in request.others])
    return msgspec.structs.replace(request, others=VouchedRows(sendable_rows(np.sort(rows)), bytes(64)))


@pytest.mark.parametrize(
    "federation",
    [
        lambda wire: cn.Federation(made_parties(), transport=wire).coreset(RIDGE, PLAIN, seed=1),
        lambda wire: cn.Federation(many_parties(NEAR + 1), transport=wire).coreset(RIDGE, PLAIN, seed=1),
        lambda wire: cn.Federation(many_parties(), transport=wire).coreset(
            RIDGE, cn.ImportanceSampling(200, scores="plain", draws="committed"), seed=1
        ),
    ],
)
def test_where_each_signs_for_all_nobodys_word_for_others_counts(federation: Any) -> None:
    """Few parties check each signature; so do all parties of committed draws."""
    wire = Meddling(lambda _, request: vouched_of(request) if isinstance(request, AskScores) else request)
    with pytest.raises(cn.ColonnadeError, match="where each of them has signed its own"):
        federation(wire)


@pytest.mark.parametrize("kind", ["AskVouched", "AskScores"])
def test_a_party_that_restarts_vouches_alike(kind: str) -> None:
    wanted = cn.Federation(many_parties()).coreset(RIDGE, PLAIN, seed=1).coreset
    restarting = Restarting(kind, FIRST)
    found = cn.Federation(many_parties(), transport=restarting).coreset(RIDGE, PLAIN, seed=1).coreset
    assert restarting.restarts == 1
    assert found.rows.tobytes() == wanted.rows.tobytes()
    assert found.weights.tobytes() == wanted.weights.tobytes()
