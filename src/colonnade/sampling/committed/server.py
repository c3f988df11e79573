"""Committed draws at the server: rounds 1 and 2 of Algorithm 1 so that nobody can bend them.

A party commits to its scores, as whole numbers in a tree of hashes and sums, and to a contribution to the joint seed,
before it knows anybody else's. Then all tell their contributions; the server committed to its own in its first message.
The joint seed decides, in whole numbers, how many rows each party draws and which: a draw has no freedom left, and
whoever sees a few rows of the tree opened can tell whether it was made so.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import numpy as np

from colonnade.contracts import Draw, Outbox, Script
from colonnade.coreset import Coreset, Evidence, PartyEvidence
from colonnade.kernels.arrays import Floats
from colonnade.kernels.integer_draws import TOTAL_BITS, even_rows, stratified_points
from colonnade.kernels.masks import Words
from colonnade.ledger import SERVER
from colonnade.messages import Message, sendable_rows
from colonnade.privacy.statements import DIGEST_BYTES
from colonnade.protocol import checks
from colonnade.routes import Ask, AtMost, Route, then
from colonnade.sampling.committed.joint_seed import (
    PROTOCOL,
    contribution_digest,
    draw_key,
    even_key,
    joint_key,
    key_of,
    quotas_of,
    total_of,
)
from colonnade.sampling.committed.messages import (
    AskCommitment,
    AskContribution,
    Commitment,
    CommittedRows,
    Contribution,
    DrawCommitted,
    PartyCommitment,
    commitment_of,
)
from colonnade.sampling.plain.server import (
    ROUNDING,
    ask_scores,
    bounds_of_totals,
    check_total,
    exchanged,
    sum_within_limits,
)
from colonnade.sampling.rules.filled import FilledScores
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.secure.server import SecureSum
from colonnade.sampling.weights import Design
from colonnade.signing import SignedRows, digest


def sample_committed(
    design: Design, rule: IntegerScores, rng: np.random.Generator, *, in_secret: bool
) -> Script[Coreset]:
    """Play Algorithm 1 with committed draws; scores are summed in secret, or told.

    The random generator makes the server's contribution to the joint seed, and nothing else.
    """
    ours = digest(PROTOCOL, b"server", rng.bytes(DIGEST_BYTES))
    draw, total, evidence = yield from _draw(design, rule, ours)
    if in_secret:
        scores = yield from SecureSum(rule, design.row_weights)(design.roster, draw)
    else:
        scores, evidence = yield from _tell_scores(design, rule, draw, evidence)
    return replace(design.weigh(draw.rows, scores, total), evidence=evidence)


def committed_route(rule: IntegerScores, size: int) -> Route:
    """Say what a party is asked: to commit, to contribute, to draw; once."""
    drawing = Ask(DrawCommitted, count=AtMost(size), n_even=AtMost(size))
    return then(Ask(AskCommitment, rule=rule), Ask(AskContribution), drawing)


def _draw(design: Design, rule: IntegerScores, ours: bytes) -> Script[tuple[Draw, float, Evidence]]:
    """Play the three rounds: S, G, and evidence without scores."""
    roster, row_weights = design.roster, design.row_weights
    asked: Outbox = dict.fromkeys(roster.names, AskCommitment(rule, contribution_digest(SERVER, ours)))
    told = yield asked
    commitments = checks.replies(told, Commitment)
    _check_commitments(commitments, bounds_of_totals(design, rule), rule)

    names = sorted(roster.names)
    reveal: Outbox = dict.fromkeys(
        roster.names, AskContribution(tuple(_relayed(name, commitments[name]) for name in names))
    )
    shown = yield reveal
    replies = checks.replies(shown, Contribution)
    contributions = {name: _contribution(name, commitments[name], replies[name]) for name in names}
    key = joint_key(ours, tuple(contributions.values()))

    totals = [commitments[name].total for name in roster.names]
    n_even, quotas = quotas_of(key, totals, design.size, design.even_share)
    orders: Outbox = {
        name: DrawCommitted(int(quota), n_even, ours, tuple(contributions.values()))
        for name, quota in zip(roster.names, quotas, strict=True)
    }
    answers = yield orders
    drawn = checks.replies(answers, CommittedRows)
    signed = _read_rows(drawn, quotas.tolist(), roster.n_rows)
    even = even_rows(roster.n_rows, n_even, even_key(key), row_weights)
    rows = sendable_rows(np.sort(np.concatenate([*(each.rows for each in drawn.values()), even])))
    evidence = Evidence(
        rule.exponent,
        contribution_digest(SERVER, ours),
        ours,
        {name: _evidence(commitments[name], contributions[name], drawn[name]) for name in roster.names},
        None if row_weights is None else tuple(row_weights[rows].tolist()),
    )
    # What parties committed and contributed comes back to them in these requests.
    said = exchanged(roster, asked, reveal, orders, answers)
    committed = {name: total_of([commitments[name].total], rule.exponent) for name in roster.names}
    draw = Draw(rows, signed, said, committed, design.even_share)
    return draw, total_of(totals, rule.exponent), evidence


def _tell_scores(
    design: Design, rule: IntegerScores, draw: Draw, evidence: Evidence
) -> Script[tuple[Floats, Evidence]]:
    """Sum scores that every party tells, shape (m,), and keep them; none may contradict the draw it committed to."""
    replies = yield from ask_scores(design.roster, draw)
    parties = {}
    for party, reply in replies.items():
        steps = np.ldexp(reply.scores, evidence.exponent)
        if (steps != np.rint(steps)).any() or (steps >= 2.0**TOTAL_BITS).any():
            raise checks.wrong(party, reply, f"a score that is not a number of steps of 2^-{evidence.exponent}")
        _check_copies(party, reply, draw, steps.astype(np.uint64), evidence)
        parties[party] = msgspec.structs.replace(evidence.parties[party], scores=tuple(map(int, steps.tolist())))
    scores = {party: reply.scores for party, reply in replies.items()}
    total = sum_within_limits(rule, design.row_weights, design.roster, draw, replies, scores)
    return total, msgspec.structs.replace(evidence, parties=parties)


def _check_copies(party: str, reply: Message, draw: Draw, steps: Words, evidence: Evidence) -> None:
    """Require that no row was drawn more often than its score allows: all its draws fall within its length."""
    rows = draw.by(party)
    points = stratified_points(evidence.parties[party].total, len(rows), draw_key(key_of(evidence), party))
    ids, first, counts = np.unique(rows, return_index=True, return_counts=True)
    lengths = steps[np.searchsorted(draw.rows, ids)]
    for at in np.flatnonzero(points[first + counts - 1] - points[first] >= lengths)[:1].tolist():
        raise checks.wrong(
            party, reply, f"too low a score of row {ids[at]} to draw it {counts[at]} times in {len(rows):,}"
        )


def _check_commitments(replies: Mapping[str, Commitment], most: Mapping[str, float], rule: IntegerScores) -> None:
    for party, reply in replies.items():
        if len(reply.root) != DIGEST_BYTES or len(reply.contribution_digest) != DIGEST_BYTES:
            raise checks.wrong(
                party, reply, f"digests of {len(reply.root)} and {len(reply.contribution_digest)} bytes, not 32"
            )
        total = total_of([reply.total], rule.exponent)
        check_total(party, reply, total, most[party])
        if isinstance(rule.rule, FilledScores) and total < most[party] * (1 - 2 * ROUNDING):
            raise checks.wrong(party, reply, f"the total {total:g}, where {most[party]:g} was set")


def _contribution(name: str, commitment: Commitment, reply: Contribution) -> bytes:
    if contribution_digest(name, reply.value) != commitment.contribution_digest:
        raise checks.wrong(name, reply, "another contribution to the joint seed than it had committed to")
    return reply.value


def _read_rows(replies: Mapping[str, CommittedRows], counts: Sequence[int], n_rows: int) -> dict[str, SignedRows]:
    for (party, reply), count in zip(replies.items(), counts, strict=True):
        checks.shape(party, reply, reply.rows, (count,))
        checks.row_ids(party, reply, reply.rows, n_rows)
    return {party: SignedRows(party, reply.rows, reply.signature) for party, reply in replies.items()}


def _relayed(name: str, commitment: Commitment) -> PartyCommitment:
    return PartyCommitment(commitment_of(name, commitment), commitment.contribution_digest, commitment.signature)


def _evidence(commitment: Commitment, contribution: bytes, drawn: CommittedRows) -> PartyEvidence:
    return PartyEvidence(
        commitment.root,
        commitment.total,
        commitment.contribution_digest,
        contribution,
        tuple(map(int, drawn.rows.tolist())),
        signature=commitment.signature,
        draw_signature=drawn.signature,
    )
