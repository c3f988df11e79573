"""Committed draws: rounds 1 and 2 of Algorithm 1 so that nobody can bend them. Messages, script, what is hashed.

A party commits to its scores, as whole numbers in a tree of hashes and sums, and to a contribution to the joint seed,
before it knows anybody else's. Then all tell their contributions; the server's was sealed in its first message. The
joint seed decides, in whole numbers, how many rows each party draws and which: a draw has no freedom left, and whoever
sees a few rows of the tree opened can tell whether it was made so.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar

import msgspec
import numpy as np

from colonnade.contracts import Drawn, Outbox, Roster, Script
from colonnade.coreset import Evidence, PartyEvidence
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.integer_draws import TOTAL_BITS, even_rows, stratified_points
from colonnade.kernels.masks import Words
from colonnade.ledger import SERVER
from colonnade.messages import Message, Reveals, sendable_rows
from colonnade.privacy.pair_keys import Lost, until_kept
from colonnade.privacy.primitives import DIGEST_BYTES, digest
from colonnade.protocol import checks
from colonnade.sampling.drawing import ROUNDING, DrawnRows, bounds_of_totals, check_total, exchanged, read_rows
from colonnade.sampling.filled import FilledScores
from colonnade.sampling.integers import IntegerScores
from colonnade.sampling.joint_seed import PROTOCOL, draw_key, even_key, joint_key, quotas_of, seal_of, total_of
from colonnade.sampling.summing import add_scores, ask_scores


class Commitment(Message, frozen=True):
    """The root of the tree of the party's scores, their total in steps, and the seal of its contribution."""

    phase: ClassVar[str] = "sampling"
    fresh: ClassVar[bool] = True

    root: Annotated[bytes, Reveals.NOTHING]
    total: Annotated[int, Reveals.TOTALS]
    seal: Annotated[bytes, Reveals.NOTHING]


class AskCommitment(Message, frozen=True):
    """Opens the phase: score your rows by this rule and commit to them. With the seal of the server's contribution."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Commitment

    rule: Annotated[IntegerScores, Reveals.NOTHING]
    seal: Annotated[bytes, Reveals.NOTHING]


class Contribution(Message, frozen=True):
    """What the party adds to the joint seed, or nothing where it no longer has it; and how it will know it again."""

    phase: ClassVar[str] = "sampling"
    fresh: ClassVar[bool] = True

    value: Annotated[bytes | None, Reveals.NOTHING]
    proof: Annotated[bytes, Reveals.NOTHING]


class Committed(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The digest of a party's commitment, which hides its total, and the seal of its contribution."""

    commitment: bytes
    seal: bytes


class AskContribution(Message, frozen=True):
    """What every party committed to, in the order of their names: nobody can change it any more."""

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = Contribution

    parties: Annotated[tuple[Committed, ...], Reveals.NOTHING]


class DrawCommitted(Message, frozen=True):
    """a_j, how many rows this party draws, and all contributions: the server's, and the parties' by name.

    With the proof that the party's own is its own.
    """

    phase: ClassVar[str] = "sampling"
    reply: ClassVar[type[Message]] = DrawnRows

    count: Annotated[int, Reveals.TOTALS]
    server: Annotated[bytes, Reveals.NOTHING]
    parties: Annotated[tuple[bytes, ...], Reveals.NOTHING]
    proof: Annotated[bytes, Reveals.NOTHING]


def draw_committed(
    roster: Roster,
    rule: IntegerScores,
    rng: np.random.Generator,
    row_weights: Floats | None,
    *,
    size: int,
    even_share: float,
) -> Script[tuple[Drawn, float, Evidence]]:
    """Let parties draw rows by scores that they committed to, from a seed that nobody chose.

    Parameters
    ----------
    roster : Roster
        The parties.
    rule : IntegerScores
        How each scores its rows.
    rng : numpy.random.Generator
        Makes the server's contribution.
    row_weights : ndarray of float64, shape (n_rows,), or None
        What each row counts.
    size : int
        m.
    even_share : float
        s, the share of rows that are drawn evenly, from the joint seed too.

    Returns
    -------
    drawn : Drawn
        S.
    total : float
        G, of all parties.
    evidence : Evidence
        All that was committed, told and drawn; scores are still missing.
    """
    # One for all attempts: it is told only after all parties have contributed.
    ours = digest(PROTOCOL, b"server", rng.bytes(DIGEST_BYTES))
    return (
        yield from until_kept(
            lambda: _attempt(roster, rule, ours, row_weights, size, even_share), what="what it had sealed"
        )
    )


def _attempt(
    roster: Roster,
    rule: IntegerScores,
    ours: bytes,
    row_weights: Floats | None,
    size: int,
    even_share: float,
) -> Script[tuple[Drawn, float, Evidence] | Lost]:
    """Play the three rounds once; return the rows, or the party that lost its contribution."""
    asked: Outbox = dict.fromkeys(roster.names, AskCommitment(rule, seal_of(SERVER, ours)))
    told = yield asked
    commitments = checks.replies(told, Commitment)
    _check_commitments(commitments, bounds_of_totals(roster, rule, row_weights), rule)

    names = sorted(roster.names)
    entries = tuple(Committed(commitment_of(name, commitments[name]), commitments[name].seal) for name in names)
    reveal: Outbox = dict.fromkeys(roster.names, AskContribution(entries))
    shown = yield reveal
    replies = checks.replies(shown, Contribution)
    for party, reply in replies.items():
        if reply.value is None:
            return Lost(party)
    contributions = {name: _contribution(name, commitments[name], replies[name]) for name in names}
    key = joint_key(ours, tuple(contributions.values()))

    totals = [commitments[name].total for name in roster.names]
    n_even, quotas = quotas_of(key, totals, size, even_share)
    orders: Outbox = {
        name: DrawCommitted(int(quota), ours, tuple(contributions.values()), replies[name].proof)
        for name, quota in zip(roster.names, quotas, strict=True)
    }
    answers = yield orders
    by_party = read_rows(checks.replies(answers, DrawnRows), quotas, roster.n_rows)
    even = even_rows(roster.n_rows, n_even, even_key(key), row_weights)
    rows = sendable_rows(np.sort(np.concatenate([*by_party.values(), even])))
    evidence = Evidence(
        rule.exponent,
        seal_of(SERVER, ours),
        ours,
        {name: _evidence(commitments[name], contributions[name], by_party[name]) for name in roster.names},
        None if row_weights is None else tuple(row_weights[rows].tolist()),
    )
    # What parties committed and contributed comes back to them in these requests.
    drawn = Drawn(rows, by_party, exchanged(roster, asked, reveal, orders, answers))
    return drawn, total_of(totals, rule.exponent), evidence


def commitment_of(name: str, commitment: Commitment) -> bytes:
    """Hash what a party committed to; the root's salts hide the total in it."""
    total = commitment.total.to_bytes(8, "little")
    return digest(PROTOCOL, b"commitment", name.encode(), commitment.root, total, commitment.seal)


def told_in_the_clear(roster: Roster, drawn: Drawn, evidence: Evidence) -> Script[tuple[Floats, Evidence]]:
    """Sum scores that every party tells, and keep them; none may contradict the draw that it was committed to.

    Parameters
    ----------
    roster : Roster
        The parties.
    drawn : Drawn
        S, and the part of it that each party drew.
    evidence : Evidence
        Of the draw.

    Returns
    -------
    scores : ndarray of float64, shape (m,)
        g_i for each i in S.
    evidence : Evidence
        With each party's scores.
    """
    replies = yield from ask_scores(roster, drawn)
    parties = {}
    for party, reply in replies.items():
        steps = np.ldexp(reply.scores, evidence.exponent)
        if (steps != np.rint(steps)).any() or (steps >= 2.0**TOTAL_BITS).any():
            raise checks.wrong(party, reply, f"a score that is not a number of steps of 2^-{evidence.exponent}")
        _check_copies(party, reply, drawn, steps.astype(np.uint64), evidence)
        parties[party] = msgspec.structs.replace(evidence.parties[party], scores=tuple(map(int, steps.tolist())))
    total = add_scores(replies, {party: reply.scores for party, reply in replies.items()})
    return total, msgspec.structs.replace(evidence, parties=parties)


def _check_copies(party: str, reply: Message, drawn: Drawn, steps: Words, evidence: Evidence) -> None:
    """Require that no row was drawn more often than its score allows: all its draws fall within its length."""
    rows = drawn.by_party[party]
    points = stratified_points(evidence.parties[party].total, len(rows), draw_key(key_of(evidence), party))
    ids, first, counts = np.unique(rows, return_index=True, return_counts=True)
    lengths = steps[np.searchsorted(drawn.rows, ids)]
    for at in np.flatnonzero(points[first + counts - 1] - points[first] >= lengths)[:1].tolist():
        raise checks.wrong(
            party, reply, f"too low a score of row {ids[at]} to draw it {counts[at]} times in {len(rows):,}"
        )


def key_of(evidence: Evidence) -> bytes:
    """Make the joint seed again."""
    return joint_key(evidence.contribution, [evidence.parties[name].contribution for name in sorted(evidence.parties)])


def _check_commitments(replies: Mapping[str, Commitment], most: Mapping[str, float], rule: IntegerScores) -> None:
    for party, reply in replies.items():
        if len(reply.root) != DIGEST_BYTES or len(reply.seal) != DIGEST_BYTES:
            raise checks.wrong(party, reply, f"digests of {len(reply.root)} and {len(reply.seal)} bytes, not 32")
        total = total_of([reply.total], rule.exponent)
        check_total(party, reply, total, most[party])
        if isinstance(rule.rule, FilledScores) and total < most[party] * (1 - 2 * ROUNDING):
            raise checks.wrong(party, reply, f"the total {total:g}, where {most[party]:g} was set")


def _contribution(name: str, commitment: Commitment, reply: Contribution) -> bytes:
    value = reply.value or b""
    if seal_of(name, value) != commitment.seal:
        raise checks.wrong(name, reply, "another contribution to the joint seed than it had sealed")
    return value


def _evidence(commitment: Commitment, contribution: bytes, rows: Rows) -> PartyEvidence:
    return PartyEvidence(
        commitment.root, commitment.total, commitment.seal, contribution, tuple(map(int, rows.tolist()))
    )
