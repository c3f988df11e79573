"""The spot check of a committed draw: compares the evidence of a run with what was opened of it.

It needs no party and no secret: anybody can do it again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from colonnade.coreset import Coreset, Evidence, PartyEvidence
from colonnade.errors import RemoteProtocolError
from colonnade.kernels.arrays import Floats
from colonnade.kernels.integer_draws import even_rows, stratified_points
from colonnade.ledger import SERVER
from colonnade.privacy.sum_tree import Opening, start_of
from colonnade.sampling.committed.joint_seed import contribution_digest, draw_key, even_key, key_of, quotas_of, total_of
from colonnade.sampling.weights import weights_of

# Sums that were made under masks are rounded.
SUM_TOLERANCE = 1e-5
WEIGHT_TOLERANCE = 1e-9
_ROOT_BYTES = 32


@dataclass(frozen=True)
class SpotCheck:
    """What a spot check found in order.

    Parameters
    ----------
    n_rows : int
        How many rows the coreset has.
    opened : dict of str to int
        How many of each party's draws were opened and compared.
    findings : tuple of str
        What was checked, in plain words.
    """

    n_rows: int
    opened: dict[str, int]
    findings: tuple[str, ...]

    def to_json(self) -> str:
        """Write it as a JSON object."""
        return msgspec.json.encode(self).decode()

    def __str__(self) -> str:
        return "\n".join(["Nothing was found wrong.", *(f"- {finding}" for finding in self.findings)])


def spot_check(
    coreset: Coreset, evidence: Evidence, totals: Mapping[str, float], size: int, even_share: float
) -> SpotCheck:
    """Compare what was drawn and told with what was committed to; what does not fit is an error that names the party.

    No party's total can exceed `totals`; `size` and `even_share` are what was asked for.
    """
    key = _joint_key(evidence, totals)
    n_even, quotas = quotas_of(key, [each.total for each in evidence.parties.values()], size, even_share)
    for (party, each), quota in zip(evidence.parties.items(), quotas.tolist(), strict=True):
        if len(each.rows) != quota:
            raise _caught(party, f"drew {len(each.rows)} rows where the joint seed says {quota}")
    _check_rows(coreset, evidence, n_even, key)
    _check_scores(coreset, evidence, size, even_share)
    opened = {party: _check_draws(party, each, coreset, key) for party, each in evidence.parties.items()}
    _check_sums(coreset, evidence, size, even_share)
    return SpotCheck(size, opened, _findings(evidence, opened))


def _joint_key(evidence: Evidence, most: Mapping[str, float]) -> bytes:
    """Check contributions and totals, and make the joint seed."""
    if set(evidence.parties) != set(most):
        raise _caught(SERVER, f"has evidence of {', '.join(evidence.parties)}, not of {', '.join(most)}")
    committed = {SERVER: (evidence.contribution_digest, evidence.contribution)}
    committed |= {party: (each.contribution_digest, each.contribution) for party, each in evidence.parties.items()}
    for who, (digest, contribution) in committed.items():
        if contribution_digest(who, contribution) != digest:
            raise _caught(who, "contributed something else to the joint seed than it had committed to")
    for party, each in evidence.parties.items():
        total = total_of([each.total], evidence.exponent)
        if len(each.root) != _ROOT_BYTES or not 0 < total <= most[party] * (1 + SUM_TOLERANCE):
            raise _caught(party, f"committed to a total of {total:g}, where {most[party]:g} is the most there can be")
    return key_of(evidence)


def _check_rows(coreset: Coreset, evidence: Evidence, n_even: int, key: bytes) -> None:
    for party, each in evidence.parties.items():
        rows = np.array(each.rows, np.int64)
        if len(rows) and (rows[0] < 0 or rows[-1] >= coreset.n_rows or np.any(rows[1:] < rows[:-1])):
            raise _caught(party, f"drew rows that do not ascend within 0..{coreset.n_rows - 1}")
    drawn = np.concatenate([np.array(each.rows, np.int64) for each in evidence.parties.values()])
    ids, counts = np.unique(coreset.rows, return_counts=True)
    drawn_ids, drawn_counts = np.unique(drawn, return_counts=True)
    left = counts.copy()
    known = np.isin(drawn_ids, ids)
    left[np.searchsorted(ids, drawn_ids[known])] -= drawn_counts[known]
    if not known.all() or (left < 0).any() or left.sum() != n_even:
        raise _caught(SERVER, "has other rows in the coreset than were drawn")
    if evidence.counts is None and not np.array_equal(
        np.repeat(ids, left), even_rows(coreset.n_rows, n_even, even_key(key))
    ):
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
    for row in set.intersection(*(set(each.opened) for each in parties.values())):
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


def _findings(evidence: Evidence, opened: Mapping[str, int]) -> tuple[str, ...]:
    secret = any(each.scores is None for each in evidence.parties.values())
    checked = [f"{draws:,} of {len(evidence.parties[party].rows):,} of {party}" for party, draws in opened.items()]
    return (
        "The server and all parties contributed to the joint seed what they had committed to before.",
        "Every party committed to a total that its columns can have, and drew as many rows as the joint seed says.",
        "Weights follow from sums that were made in secret; those of opened rows were compared."
        if secret
        else "Weights follow from the scores that were told.",
        f"Draws that were opened and compared with the commitment: {', '.join(checked)}.",
        _certainty([opened[party] for party, each in evidence.parties.items() if opened[party] < len(each.rows)]),
    )


def _certainty(opened: Sequence[int]) -> str:
    """Say what it is worth that only so many draws were opened, of parties that drew more."""
    if not opened:
        return "All draws were compared: every party drew by the scores that it had committed to."
    if not min(opened):
        return (
            "No draw of some party was opened: whether it drew by its scores is not checked. "
            "`fit --spot-check 20` opens 20."
        )
    found = 1 - 0.9 ** min(opened)
    odds = f"probability {found:.2g} or more"
    return f"A party that made one in ten of its draws otherwise would have been found with {odds}."


def _caught(party: str, what: str) -> RemoteProtocolError:
    return RemoteProtocolError(f"{party!r} {what}. Do not use the coreset.", party=party)
