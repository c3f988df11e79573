"""Round 3 of Algorithm 1 under masks: the server learns the sums of the scores, and no party's own.

Three rounds take the place of one: keys, masked scores, and a comparison of what all sides saw. No party can drop
out: without one nothing is unmasked. A party that restarted in between has lost its key, says so, and all begin
again with fresh ones; the sum is the same.
"""

from collections.abc import Mapping

import numpy as np

from colonnade.contracts import Draw, Roster, ScoreRule, Script
from colonnade.errors import RemoteProtocolError, UnsupportedError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.draws import chances, even_factor, log_of
from colonnade.kernels.masks import TOLERANCE, Ring, Words, narrowest_ring, to_numbers, unpack
from colonnade.kernels.per_row import PerRow
from colonnade.messages import Message
from colonnade.privacy.pair_keys import (
    MAX_ATTEMPTS,
    LostKey,
    RelayedKeys,
    check_key,
    relayed_keys,
    signed_around,
    until_kept,
    usual_view,
)
from colonnade.privacy.statements import DIGEST_BYTES, CircleKeys, SignedDigest, agreement_of
from colonnade.protocol import checks
from colonnade.routes import Ask, Route, cut_short, some, then
from colonnade.sampling.score_limits import score_limits
from colonnade.sampling.secure.messages import (
    MARGIN,
    MOST_LOG,
    SCORES,
    Agreement,
    AskAgreement,
    AskMaskedLogs,
    AskMaskedScores,
    AskPublicKey,
    MaskedScores,
    PublicKey,
    digest_of,
    logs_at,
    transcript_of_scores,
)
from colonnade.sampling.weights import weight_of_all
from colonnade.signing import digest

# Scores are rounded, by their computation and by the ring.
SLACK = 1e-5


class SecureSum:
    """Sums scores so that nobody learns a single party's.

    The rule bounds the scores from above, and the rows' weights (shape (n_rows,); 1 if None) from below: the smallest
    score of a row is its part of all. The bounds decide the ring.
    """

    def __init__(self, rule: ScoreRule, row_weights: PerRow | None) -> None:
        self._rule = rule
        self._row_weights = row_weights

    def __call__(self, roster: Roster, draw: Draw) -> Script[Floats]:
        """Sum the scores of the drawn rows, shape (m,), within a millionth of the smallest score.

        Each party must remember that the same was exchanged before as the draw says.
        """
        smallest, largest = self._bounds(roster)
        ring = narrowest_ring(smallest, largest, len(roster.cards))
        if ring is None:
            whose = "" if roster.weight_party is None else f", as {roster.weight_party!r} has them,"
            raise UnsupportedError(
                f"The weights of rows{whose} differ so much (the lightest is {smallest:.3g} of all) that "
                'a secure sum does not fit in 64 bits. Leave out the lightest rows, or pass scores="plain".'
            )
        total = yield from until_kept(lambda: _attempt(roster, draw, ring, None))
        return self._checked(to_numbers(total, ring), roster, draw)

    def _bounds(self, roster: Roster) -> tuple[float, float]:
        """Bound every party's score of every row, from what all sides know: so that all draws have one ring."""
        largest = max(self._rule.bounds(card, roster.n_rows).score for card in roster.cards)
        return _lightest(self._row_weights) / weight_of_all(roster, self._row_weights), largest

    def _checked(self, sums: Floats, roster: Roster, draw: Draw) -> Floats:
        limits = score_limits(self._rule, self._row_weights, roster.n_rows, draw.rows)
        most = sum(self._rule.bounds(card, limits.n_counted).score for card in roster.cards)
        what = limits.broken_by(sums, most, len(roster.cards), sum(draw.totals.values()), SLACK)
        if what is not None:
            raise RemoteProtocolError(
                f"The sum of the scores of {', '.join(roster.names)} is outside the range that scores have: {what}. "
                "One of them masked something else, and a secure sum does not show which. Nothing of it was used; see "
                "that all run the same version."
            )
        return sums


class SecureLogs:
    """Sums -log(1 - pi_ij) of distinct draws so that nobody learns a single party's, or which of them is certain.

    The rows' weights (shape (n_rows,); 1 if None) bound scores, and so chances, from below; that decides the ring.
    """

    def __init__(self, row_weights: PerRow | None) -> None:
        self._row_weights = row_weights

    def __call__(self, roster: Roster, draw: Draw) -> Script[Floats]:
        """Sum the logarithms of the drawn rows, shape (m,); infinite where a party is certain.

        Within a millionth of the smallest that the sum of all, the even draw's among them, can be: so are the weights.
        """
        smallest = float(np.sum(self._least(roster, draw, np.array([_lightest(self._row_weights)]))))
        ring = narrowest_ring(smallest, MOST_LOG * MARGIN, len(roster.cards))
        if ring is None:
            raise UnsupportedError(
                f"Rows have so small a chance to be drawn (the least is {smallest:.3g}) that a secure sum "
                'of its logarithm does not fit in 64 bits. Draw more rows, or pass draws="stratified".'
            )
        _check_all_drew(draw)
        total = yield from until_kept(lambda: _attempt(roster, draw, ring, rate_of(draw)))
        sums = to_numbers(total, ring)
        counts = np.ones(len(sums)) if self._row_weights is None else self._row_weights[draw.rows]
        least, _ = self._least(roster, draw, counts)
        sums = np.where(sums > len(roster.cards) * MOST_LOG * (1 + SLACK), np.inf, sums)
        what = _broken_by(sums, least * (1 - SLACK) - TOLERANCE * smallest, draw)
        if what is not None:
            raise RemoteProtocolError(
                f"The sum of the chances of {', '.join(roster.names)} is outside what chances have: {what}. One of "
                "them masked something else, and a secure sum does not show which. Nothing of it was used; see that "
                "all run the same version."
            )
        return sums

    def _least(self, roster: Roster, draw: Draw, counts: Floats) -> tuple[Floats, Floats]:
        """Bound the sums of rows that count so much, from what all sides know; and give what the even draw adds."""
        even = chances(even_factor(roster.n_rows, draw.n_even, self._row_weights), counts)
        factor = sum(len(draw.by(party)) / total for party, total in draw.totals.items())
        return factor * counts / weight_of_all(roster, self._row_weights), np.minimum(log_of(even), MOST_LOG)


def _lightest(weights: PerRow | None) -> float:
    """Say what the row that counts least counts, of those that do."""
    return 1.0 if weights is None else weights.least_positive()


def rate_of(draw: Draw) -> float:
    """Say how many rows were drawn by scores, for one of their total."""
    return (draw.n_draws - draw.n_even) / sum(draw.totals.values())


def _check_all_drew(draw: Draw) -> None:
    """Require that every party drew by its scores, where one did: it would add nothing to sums, and not hide them."""
    counts = {party: len(draw.by(party)) for party in draw.totals}
    idle = [party for party, count in counts.items() if count == 0]
    if idle and len(idle) < len(counts):
        raise UnsupportedError(
            f"{', '.join(idle)} would draw no row by scores, and sums would tell the scores of the others: of "
            f"{draw.n_draws} rows {draw.n_even} are drawn evenly. Draw more rows, or a smaller share of them evenly."
        )


def _broken_by(sums: Floats, least: Floats, draw: Draw) -> str | None:
    """Say in which way sums of logarithms, infinite where a party is certain, are none of the chances of this draw."""
    for row in draw.rows[sums < least][:1].tolist():
        return f"row {row} has less of one than its weight alone gives"
    drawn = np.concatenate([draw.by(party) for party in draw.totals])
    certain = draw.rows[np.isinf(sums)]
    for row in certain[~np.isin(certain, drawn)][:1].tolist():
        return f"row {row} is certain, which no party drew"
    if (chance := -np.expm1(-sums).sum()) > len(drawn) * (1 + SLACK):
        return f"they add up to {chance:g}, where {len(drawn)} rows were drawn"
    return None


def secure_sum_route(kind: type[AskMaskedScores | AskMaskedLogs], asked: dict[str, object]) -> Route:
    """Say what a party is asked: keys and masked numbers, again where a key is lost, and a comparison."""
    attempt = cut_short(Ask(AskPublicKey), Ask(kind, **asked))
    return then(some(attempt, least=1, most=MAX_ATTEMPTS), Ask(AskAgreement))


def _attempt(roster: Roster, draw: Draw, ring: Ring, rate: float | None) -> Script[Words | LostKey]:
    """Play the three rounds once, for scores, or for logarithms at a rate; return the sum, or who lost its key."""
    said = {party: digest_of(messages) for party, messages in draw.exchanged.items()}
    inbox = yield {party: AskPublicKey() for party in roster.names}
    keys = _read_keys(checks.replies(inbox, PublicKey), said)
    purpose = SCORES if rate is None else logs_at(rate)
    transcript = transcript_of_scores(purpose, keys.parties, draw.rows, ring, keys.keys, keys.view)
    inbox = yield {party: _question(party, draw, ring, rate, keys.to(party)) for party in roster.names}
    replies = checks.replies(inbox, MaskedScores)
    for party, reply in replies.items():
        if reply.masked is None:
            return LostKey(party)
    told = signed_around(
        {party: _read_signed(party, reply, len(draw.rows), ring.width, transcript) for party, reply in replies.items()}
    )
    inbox = yield {party: AskAgreement(told[party]) for party in roster.names}
    for party, agreed in checks.replies(inbox, Agreement).items():
        if agreed.digest != agreement_of(transcript, told[party]):
            raise checks.wrong(party, agreed, "a digest of something else than was exchanged")
    total: Words = np.sum(
        [unpack(reply.masked or b"", ring.width) for reply in replies.values()], axis=0, dtype=np.uint64
    )
    return total


def _question(party: str, draw: Draw, ring: Ring, rate: float | None, keys: CircleKeys) -> Message:
    about = (len(draw.rows), draw.told_to(party), draw.even_share, draw.even_seed)
    if rate is None:
        return AskMaskedScores(*about, ring.width, ring.exponent, keys)
    return AskMaskedLogs(*about, draw.n_draws, rate, ring.width, ring.exponent, keys)


def _read_keys(replies: Mapping[str, PublicKey], said: Mapping[str, bytes]) -> RelayedKeys:
    """Check that all remember what was exchanged, and see the same rows in the same units; order by name."""
    view = usual_view(reply.view for reply in replies.values())
    for party, reply in replies.items():
        if reply.exchanged != said[party]:
            raise checks.wrong(party, reply, "a digest of other messages than were exchanged with it")
        if reply.view != view or len(view) != DIGEST_BYTES:
            raise checks.wrong(party, reply, "other row weights or units than other parties have")
        check_key(party, reply, reply.key)
    parties = tuple(sorted(replies))
    told = (replies[party] for party in parties)
    return RelayedKeys(parties, *relayed_keys((each.key, each.exchanged, each.signature) for each in told), view)


def _read_signed(party: str, reply: MaskedScores, size: int, width: int, transcript: bytes) -> SignedDigest:
    packed = reply.masked or b""
    if reply.width != width or len(packed) != size * width:
        raise checks.wrong(party, reply, f"{len(packed)} bytes where {size} x {width} are due")
    if reply.transcript != transcript:
        raise checks.wrong(party, reply, "a digest of another request than it was sent")
    return SignedDigest(digest(packed), reply.signature)
