"""The spot check of a committed draw: compares the evidence of a run with what was opened of it.

It needs no party and no secret: anybody can do it again. Who has the parties' pins can also tell whether a party is
blamed for what it did: each signed what it committed to and what it drew.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import msgspec
import numpy as np

from colonnade.coreset import Coreset, Evidence, PartyEvidence
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.integer_draws import even_rows, stratified_points
from colonnade.ledger import SERVER
from colonnade.privacy.sum_tree import Opening, start_of
from colonnade.sampling.committed.joint_seed import (
    contribution_digest,
    draw_key,
    even_key,
    joint_draw_statement,
    key_of,
    quotas_of,
    total_of,
)
from colonnade.sampling.committed.messages import (
    AskCommitment,
    Commitment,
    commitment_of,
    commitment_statement,
)
from colonnade.sampling.rules.integers import IntegerScores
from colonnade.sampling.weights import Design, weight_of_all, weights_of
from colonnade.signing import digest

# Tells whether a party, by its name, signed a statement.
IsSigned = Callable[[str, bytes, bytes], bool]

# Sums that were made under masks are rounded.
SUM_TOLERANCE = 1e-5
WEIGHT_TOLERANCE = 1e-9
_ROOT_BYTES = 32
SIGNED = "Every party signed what it committed to, and what it drew, for this job."
NOT_SIGNED = "Signatures were not compared: that takes the parties' pins, `colonnade spot-check RUN --pins pins.toml`."


@dataclass(frozen=True)
class SpotCheck:
    """What a spot check found in order.

    Parameters
    ----------
    n_rows : int
        How many rows the coreset has.
    opened : dict of str to int
        How many of each party's draws were opened and compared.
    opened_evenly : int
        How many of the rows drawn evenly were.
    findings : tuple of str
        What was checked, in plain words.
    """

    n_rows: int
    opened: dict[str, int]
    opened_evenly: int
    findings: tuple[str, ...]

    def to_json(self) -> str:
        """Write it as a JSON object."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        return "\n".join(["Nothing was found wrong.", *(f"- {finding}" for finding in self.findings)])


def spot_check(
    coreset: Coreset,
    evidence: Evidence,
    rule: IntegerScores,
    design: Design,
    *,
    weights_known: bool,
    is_signed: IsSigned | None = None,
) -> SpotCheck:
    """Compare what was drawn and told with what was committed to; what does not fit is an error that names the party.

    Parameters
    ----------
    rule : IntegerScores
        What parties were asked to score by.
    design : Design
        What was asked for.
    weights_known : bool
        Whether rows' weights in it are the run's; else the server alone says what rows of the coreset count.
    is_signed : callable, optional
        Lets signatures be compared first: a party is then blamed for nothing that it did not sign.
    """
    _check_parties(evidence, rule, design)
    even = _even_part(coreset, evidence)
    if is_signed is not None:
        _check_signatures(evidence, rule, even, is_signed)
    key = _joint_key(evidence, rule, design)
    n_even, quotas = quotas_of(key, [each.total for each in evidence.parties.values()], design.size, design.even_share)
    for (party, each), quota in zip(evidence.parties.items(), quotas.tolist(), strict=True):
        if len(each.rows) != quota:
            raise _caught(party, f"drew {len(each.rows)} rows where the joint seed says {quota}")
    _check_rows(coreset, evidence, even, n_even)
    if weights_known:
        _check_even(coreset, evidence, even, key, design)
    _check_scores(coreset, evidence, design.size, design.even_share)
    opened = {party: _check_draws(party, each, coreset, key) for party, each in evidence.parties.items()}
    _check_sums(coreset, evidence, design.size, design.even_share)
    opened_evenly = int(np.isin(even, list(_opened_by_all(evidence))).sum())
    drawn = {f"of {party}": (opened[party], len(each.rows)) for party, each in evidence.parties.items()}
    drawn |= {"drawn evenly": (opened_evenly, n_even)} if n_even else {}
    findings = (
        "The server and all parties contributed to the joint seed what they had committed to before.",
        "Every party committed to a total that its columns can have, and drew as many rows as the joint seed says.",
        _weights_finding(evidence),
        *([_even_finding(known=weights_known, signed=is_signed is not None)] if n_even else []),
        NOT_SIGNED if is_signed is None else SIGNED,
        *_opened_findings(drawn),
    )
    return SpotCheck(design.size, opened, opened_evenly, findings)


def _check_parties(evidence: Evidence, rule: IntegerScores, design: Design) -> None:
    names = design.roster.names
    if set(evidence.parties) != set(names) or evidence.exponent != rule.exponent:
        raise _caught(
            SERVER,
            f"has evidence of {', '.join(evidence.parties)} in steps of 2^-{evidence.exponent}, not of "
            f"{', '.join(names)} in steps of 2^-{rule.exponent}",
        )


def _even_part(coreset: Coreset, evidence: Evidence) -> Rows:
    """List the rows of the coreset that no party drew, or that are in it more often than parties drew them."""
    ids, counts = np.unique(coreset.rows, return_counts=True)
    drawn = _drawn(evidence)
    np.subtract.at(counts, np.searchsorted(ids, drawn[np.isin(drawn, ids)]), 1)
    return np.repeat(ids, np.maximum(counts, 0))


def _drawn(evidence: Evidence) -> Rows:
    return np.concatenate([np.array(each.rows, np.int64) for each in evidence.parties.values()])


def _opened_by_all(evidence: Evidence) -> set[int]:
    return set.intersection(*(set(each.opened) for each in evidence.parties.values()))


def _check_signatures(evidence: Evidence, rule: IntegerScores, even: Rows, is_signed: IsSigned) -> None:
    """Require each party's signatures for this job: on what it committed to, on the joint seed and its rows."""
    asked, key, sheet = AskCommitment(rule, evidence.contribution_digest), key_of(evidence), digest(evidence.sheet)
    for party, each in evidence.parties.items():
        commitment = commitment_of(party, Commitment(each.root, each.total, each.contribution_digest, each.signature))
        committed = commitment_statement(party, sheet, asked, commitment, each.contribution_digest)
        drew = joint_draw_statement(party, sheet, key, np.array(each.rows, np.int64), even)
        if not is_signed(party, committed, each.signature):
            raise _caught(SERVER, f"has a commitment of {party!r} that {party!r} did not sign for this job")
        if not is_signed(party, drew, each.draw_signature):
            raise _caught(SERVER, f"has a draw of {party!r}, or even rows, that {party!r} did not sign for this job")


def _joint_key(evidence: Evidence, rule: IntegerScores, design: Design) -> bytes:
    """Check contributions and totals, and make the joint seed."""
    committed = {SERVER: (evidence.contribution_digest, evidence.contribution)}
    committed |= {party: (each.contribution_digest, each.contribution) for party, each in evidence.parties.items()}
    for who, (sealed, contribution) in committed.items():
        if contribution_digest(who, contribution) != sealed:
            raise _caught(who, "contributed something else to the joint seed than it had committed to")
    for card in design.roster.cards:
        each, most = evidence.parties[card.name], rule.bounds(card, design.roster.n_rows).total
        total = total_of([each.total], evidence.exponent)
        if len(each.root) != _ROOT_BYTES or not 0 < total <= most * (1 + SUM_TOLERANCE):
            raise _caught(card.name, f"committed to a total of {total:g}, where {most:g} is the most there can be")
    return key_of(evidence)


def _check_rows(coreset: Coreset, evidence: Evidence, even: Rows, n_even: int) -> None:
    for party, each in evidence.parties.items():
        rows = np.array(each.rows, np.int64)
        if len(rows) and (rows[0] < 0 or rows[-1] >= coreset.n_rows or np.any(rows[1:] < rows[:-1])):
            raise _caught(party, f"drew rows that do not ascend within 0..{coreset.n_rows - 1}")
    together = np.sort(np.concatenate([_drawn(evidence), even]))
    if len(even) != n_even or not np.array_equal(together, coreset.rows):
        raise _caught(SERVER, "has other rows in the coreset than were drawn")


def _check_even(coreset: Coreset, evidence: Evidence, even: Rows, key: bytes, design: Design) -> None:
    """Compare what rows count, and which were drawn evenly, with the split and the joint seed."""
    weights = design.row_weights
    counts = np.ones(len(coreset)) if weights is None else weights[coreset.rows]
    if not np.array_equal(_counts(evidence, len(coreset)), counts) or coreset.total_weight != weight_of_all(
        design.roster, weights
    ):
        raise _caught(SERVER, "lets rows count otherwise than the split says")
    if not np.array_equal(even, even_rows(coreset.n_rows, len(even), even_key(key), weights)):
        raise _caught(SERVER, "drew other even rows than the joint seed says")


def _check_scores(coreset: Coreset, evidence: Evidence, size: int, even_share: float) -> None:
    """Compute the weights again from the scores that were told."""
    for party, each in evidence.parties.items():
        if each.scores is not None and len(each.scores) != len(coreset):
            raise _caught(party, f"told {len(each.scores)} scores of {len(coreset)} rows")
    told = [each.scores for each in evidence.parties.values() if each.scores is not None]
    if len(told) != len(evidence.parties):
        return
    sums = np.array([sum(column) for column in zip(*told, strict=True)], np.float64)
    total = total_of([each.total for each in evidence.parties.values()], evidence.exponent)
    scores, counts = np.ldexp(sums, -evidence.exponent), _counts(evidence, len(coreset))
    weights = weights_of(scores, total, counts, coreset.total_weight, size, even_share)
    if not np.allclose(coreset.weights, weights, rtol=WEIGHT_TOLERANCE, atol=0):
        raise _caught(SERVER, "weighted rows otherwise than the scores that it was told say")


def _check_draws(party: str, each: PartyEvidence, coreset: Coreset, key: bytes) -> int:
    """Compare opened rows with the tree, the points of the draw, and the scores that were told; count the draws."""
    points = stratified_points(each.total, len(each.rows), draw_key(key, party))
    rows, places = np.array(each.rows, np.int64), coreset.rows
    compared = 0
    for row, shown in each.opened.items():
        opening = Opening(shown.score, shown.salt, shown.hashes, shown.sums)
        start = start_of(opening, row, coreset.n_rows, each.root, each.total)
        if start is None:
            raise _caught(party, f"opened row {row} to something that it had not committed to")
        # Points and rows both ascend: the t-th row is the one on which the t-th point falls.
        drew = np.searchsorted(rows, [row, row + 1])
        falls = np.searchsorted(points, np.array([start, start + shown.score], np.uint64))
        if not np.array_equal(drew, falls) and (drew[1] > drew[0] or falls[1] > falls[0]):
            raise _caught(
                party,
                f"drew row {row} {drew[1] - drew[0]} times as number {drew[0]} to {drew[1]} of its draws, where its "
                f"scores put it {falls[1] - falls[0]} times, {falls[0]} to {falls[1]}: it did not draw by its scores",
            )
        at = int(np.searchsorted(places, row))
        if each.scores is not None and at < len(places) and places[at] == row and each.scores[at] != shown.score:
            raise _caught(party, f"told another score of row {row} than it had committed to")
        compared += int(drew[1] - drew[0])
    return compared


def _check_sums(coreset: Coreset, evidence: Evidence, size: int, even_share: float) -> None:
    """Compare sums of opened scores with what the weights say that the secret sum was."""
    parties = evidence.parties
    if even_share == 1 or not all(each.scores is None for each in parties.values()):
        return
    total = total_of([each.total for each in parties.values()], evidence.exponent)
    counts = _counts(evidence, len(coreset))
    by_weight = total * counts / (size * coreset.weights)
    sums = (by_weight - even_share * total * counts / coreset.total_weight) / (1 - even_share)
    for row in _opened_by_all(evidence):
        at = int(np.searchsorted(coreset.rows, row))
        opened = total_of([each.opened[row].score for each in parties.values()], evidence.exponent)
        if at < len(coreset) and coreset.rows[at] == row and abs(opened - sums[at]) > SUM_TOLERANCE * opened:
            raise RemoteProtocolError(
                f"The secret sum of the scores of row {row} is {sums[at]:g}; the scores that {', '.join(parties)} had "
                f"committed to add up to {opened:g}. One of them masked something else, and a secret sum does not "
                "show which. Do not use the coreset."
            )


def _counts(evidence: Evidence, size: int) -> Floats:
    return np.ones(size) if evidence.counts is None else np.array(evidence.counts)


def _weights_finding(evidence: Evidence) -> str:
    if any(each.scores is None for each in evidence.parties.values()):
        return "Weights follow from sums that were made in secret; those of opened rows were compared."
    return "Weights follow from the scores that were told."


def _even_finding(*, known: bool, signed: bool) -> str:
    """Say whether rows drawn evenly are the joint seed's."""
    if known or signed:
        return f"Rows drawn evenly are those that the joint seed says{'' if known else ', as all parties signed'}."
    return (
        "Whether rows drawn evenly are those that the joint seed says was not compared: it takes what all rows count, "
        "which the run does not keep, or the parties' pins."
    )


def _opened_findings(drawn: Mapping[str, tuple[int, int]]) -> tuple[str, str]:
    """Say how many draws were opened, of how many, and what it is worth that only so many were."""
    checked = [f"{opened:,} of {count:,} {who}" for who, (opened, count) in drawn.items()]
    some = [opened for opened, count in drawn.values() if opened < count]
    if not some:
        worth = "All draws were compared: every party drew by the scores that it had committed to."
    elif not min(some):
        worth = (
            "No draw of some party, or none of the even ones, was opened: whether its scores are those that it had "
            "committed to is not checked. `fit --spot-check 20` opens 20."
        )
    else:
        worth = (
            "A party that made one in ten of its draws otherwise, or told another score of one in ten of a party's, "
            f"would have been found with probability {1 - 0.9 ** min(some):.2g} or more."
        )
    return f"Draws that were opened and compared with the commitment: {', '.join(checked)}.", worth


def _caught(party: str, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"{party!r} {what}. Do not use the coreset.", party=party)
