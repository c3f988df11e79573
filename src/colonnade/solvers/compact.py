"""CompactCentral: as Central, but rows travel in a few bits a value, and the server makes up for what is rounded.

For linear tasks a party's columns of few values travel as they are, the others in their whitened basis, with a shared
dither; the means and mixing matrix that lead back also give the server the party's exact moments, by which it
calibrates the coreset's weights. For clustering each column travels in the form that suits it, those of two values as
they are. Precision is lost: nothing uses it unasked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from types import MappingProxyType
from typing import Any, ClassVar, Self, TypeVar, cast

import msgspec
import numpy as np
from msgspec.structs import force_setattr

from colonnade.contracts import (
    Agreed,
    ClusteringTask,
    Inbox,
    LinearTask,
    LogisticTask,
    PartyCard,
    Roster,
    Script,
    Solution,
    Task,
)
from colonnade.coreset import Coreset, Precision, WeightedRows
from colonnade.errors import UnsupportedError
from colonnade.kernels.arrays import Floats, Rows
from colonnade.kernels.gram import Summary
from colonnade.kernels.quantise import checked_step
from colonnade.kernels.rounding_noise import RoundedColumns
from colonnade.kernels.whitening import mix
from colonnade.messages import Message, Reveals
from colonnade.protocol import checks
from colonnade.routes import Ask, Route
from colonnade.solvers.calibrated_weights import calibrated, corrections, free_part
from colonnade.solvers.fewer_rows import kept_rows
from colonnade.solvers.precision import Noise, precision_of
from colonnade.solvers.scaled_columns import AskScaledColumns, ScaledColumns, ScaledRows, read_scaled
from colonnade.solvers.standard_errors import ErrorsInView, errors_of, no_noise
from colonnade.solvers.whitened_columns import (
    AskClassColumns,
    AskWhitenedColumns,
    WhitenedColumns,
    WhitenedRows,
    read_whitened,
)

M = TypeVar("M")
Precise = Callable[[], Precision | None]
AskColumns = AskWhitenedColumns | AskScaledColumns
# A column that varies less than this part of its deviation in all rows does not vary.
STILL = 1e-9
PartyColumns = Mapping[str, WhitenedRows | ScaledRows]


@dataclass(frozen=True, eq=False)
class Fetched:
    """What parties sent of rows.

    Parameters
    ----------
    columns : mapping of str to WhitenedRows or ScaledRows
        By party.
    kept : ndarray of int64, shape (m,)
        The places of these rows among those asked for.
    """

    columns: PartyColumns
    kept: Rows


@dataclass(frozen=True, eq=False)
class Restored:
    """What comes of the columns of all parties.

    Rows, and what rounding did to them, take longer to say than least squares takes: where a summary holds all that it
    needs, they are found when someone asks what they say of the model.

    Parameters
    ----------
    rows : callable
        Gives the rows with calibrated weights.
    facts : mapping of str to float
        What was done to them.
    noise : callable
        Says what rounding did to them.
    summary : Summary or None
        Their sums, to the last digits; None where these would not be as good as rows.
    """

    rows: Callable[[], WeightedRows]
    facts: Mapping[str, float]
    noise: Callable[[], Noise | None] = no_noise
    summary: Summary | None = None


class CompactCentral(msgspec.Struct, frozen=True, tag_field="kind", tag="compact", forbid_unknown_fields=True):
    """Fetch the coreset's rows in a few bits a value, and solve at the server.

    Columns of few values, such as levels, counts and dummies, and labels of few values, come as they are: in k-means
    those of two values. The others come rounded.

    Parameters
    ----------
    step : float
        Other values are rounded to multiples of this, in standard deviations of the (whitened) columns. 0.5 takes about
        3.5 bits a value where 64 are usual, and is near the best for a given number of bytes.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 6))
    >>> y = X @ [1.0, 2.0, 3.0, -1.0, -2.0, -3.0] + rng.normal(size=5000)
    >>> federation = cn.Federation(cn.split_columns(X, y, [3, 3]))
    >>> plain = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=1000))
    >>> compact = federation.fit(cn.Regression(), coreset=plain.coreset, solver=cn.CompactCentral(step=0.5))
    >>> bool(abs(compact.model.coef_ - plain.model.coef_).max() < 0.2)
    True
    >>> columns, rounded = plain.ledger.by_phase()["solving"].bytes, compact.ledger.by_phase()["solving"].bytes
    >>> columns > 15 * rounded
    True
    """

    shows: ClassVar[tuple[Reveals, ...]] = (Reveals.FEATURES, Reveals.LABELS)

    step: float = 0.5

    def __post_init__(self) -> None:
        force_setattr(self, "step", checked_step(self.step))

    def check(self, task: Task[object], roster: Roster, run_by: str | None) -> None:  # noqa: ARG002  # any parties
        """Take linear tasks, classifications and clusterings: others may not bear rounded rows."""
        if not isinstance(task, LinearTask | LogisticTask | ClusteringTask):
            raise UnsupportedError(f"CompactCentral cannot do {type(task).__name__}. Use Central().")

    def between_machines(self, n_parties: int) -> Self:  # noqa: ARG002  # nothing was left open
        """Stay as it is."""
        return self

    def solve(self, task: Task[M], roster: Roster, coreset: Coreset, rng: np.random.Generator) -> Script[Solution[M]]:
        """Fetch, restore, and let the task fit what came.

        What rows say of the model can take longer than to find it. Who asks for that has rows restored once more, from
        what parties sent: codes are a small part of the rows that they stand for.
        """
        asked = self._asked(task, roster, rng)
        inbox = yield {**asked}
        read = partial(read_columns, roster, coreset.rows, asked, inbox)
        solution = self.finish(task, roster, coreset, read(), rng)
        model = solution.model  # alone: the solution has the rows

        def again() -> tuple[Precise, ErrorsInView | None]:
            return _what_rows_say(task, model, roster, coreset, _restored(task, roster, coreset, read()))

        errors = None if solution.errors is None else lambda view: cast(ErrorsInView, again()[1])(view)
        return replace(solution, precision=lambda: again()[0](), errors=errors, later=True)

    def fetch(
        self,
        task: Task[object],
        roster: Roster,
        rows: Rows,
        rng: np.random.Generator,
        most: Mapping[str, int] | None = None,
        known: PartyColumns | None = None,
    ) -> Script[Fetched]:
        """Ask for rows; a party whose codes would take more than `most` bytes rounds more coarsely, or leaves out some.

        Moments that came with rows that are `known` come no second time.
        """
        asked = self._asked(task, roster, rng, most or {}, known=known is not None)
        inbox = yield {**asked}
        return read_columns(roster, rows, asked, inbox, known)

    def _asked(
        self,
        task: Task[object],
        roster: Roster,
        rng: np.random.Generator,
        most: Mapping[str, int] = MappingProxyType({}),
        *,
        known: bool = False,
    ) -> dict[str, AskColumns]:
        kind, seeds = kind_of(task), zip(roster.names, _dither_seeds(rng, len(roster.cards)), strict=True)
        return {
            party: kind(self.step, seed, most.get(party), known)
            if issubclass(kind, AskWhitenedColumns)
            else kind(self.step, seed, most.get(party))
            for party, seed in seeds
        }

    def finish(
        self, task: Task[M], roster: Roster, coreset: Coreset, fetched: Fetched, rng: np.random.Generator
    ) -> Solution[M]:
        """Restore the coreset's rows, calibrate its weights, and let the task fit them."""
        restored = _restored(task, roster, coreset, fetched)
        model, cost = _learned(task, roster, coreset, restored, rng)
        facts = {"cost": cost, **restored.facts}
        return Solution(model, facts, *_what_rows_say(task, model, roster, coreset, restored))

    def route(self, task: Task[object], agreed: Agreed) -> Route:
        """Expect one request, with the dither's seed that follows from the sheet."""
        kind = kind_of(task)
        seeds = _agreed_seeds(agreed.seed, len(agreed.roster.cards))
        return Ask(kind, step=self.step, seed=seeds[agreed.place])


def kind_of(task: Task[Any]) -> type[AskWhitenedColumns] | type[AskScaledColumns]:
    """Say how columns of this task travel."""
    if isinstance(task, LogisticTask):
        return AskClassColumns
    return AskWhitenedColumns if isinstance(task, LinearTask) else AskScaledColumns


@lru_cache(maxsize=4)  # in one process all parties read the same sheet
def _agreed_seeds(seed: int, n_parties: int) -> tuple[int, ...]:
    return tuple(_dither_seeds(np.random.default_rng(seed), n_parties))


def _dither_seeds(rng: np.random.Generator, n_parties: int) -> list[int]:
    # A stream apart: the task's own draws, folds and starts, are then those of Central.
    (dither_rng,) = rng.spawn(1)
    seeds: list[int] = dither_rng.integers(2**63, size=n_parties).tolist()
    return seeds


def read_columns(
    roster: Roster, rows: Rows, asked: Mapping[str, AskColumns], inbox: Inbox, known: PartyColumns | None = None
) -> Fetched:
    """Check and restore what parties sent of rows, ascending; of those that some left out, what others sent too."""
    found = [
        _read(card, asked[card.name], inbox[card.name], roster, rows, (known or {}).get(card.name))
        for card in roster.cards
    ]
    sizes = [len(each.values) for each in found]
    kept = kept_rows(rows, min(sizes))
    columns = [
        each if size == len(kept) else each.at(np.isin(kept_rows(rows, size), kept).nonzero()[0])
        for each, size in zip(found, sizes, strict=True)
    ]
    return Fetched(dict(zip(roster.names, columns, strict=True)), kept)


def _read(
    card: PartyCard,
    request: AskColumns,
    reply: Message,
    roster: Roster,
    rows: Rows,
    known: WhitenedRows | ScaledRows | None,
) -> WhitenedRows | ScaledRows:
    if isinstance(request, AskWhitenedColumns):
        before = known if isinstance(known, WhitenedRows) else None
        return read_whitened(
            card, checks.replies({card.name: reply}, WhitenedColumns)[card.name], roster, rows, request, before
        )
    return read_scaled(card, checks.replies({card.name: reply}, ScaledColumns)[card.name], roster, rows, request)


def _restored(task: Task[Any], roster: Roster, coreset: Coreset, fetched: Fetched) -> Restored:
    parties = [columns for columns in fetched.columns.values() if isinstance(columns, WhitenedRows)]
    if not parties:
        return _side_by_side(coreset, fetched)
    free = free_part(coreset.weights, roster)
    return (_of_classes if isinstance(task, LogisticTask) else _of_numbers)(coreset, parties, free)


def _learned(
    task: Task[M], roster: Roster, coreset: Coreset, restored: Restored, rng: np.random.Generator
) -> tuple[M, float]:
    """Give the model, and its objective."""
    if restored.summary is not None and isinstance(task, LinearTask) and not task.takes_folds:
        return task.fit_summaries([restored.summary], coreset.total_weight, roster)
    rows = restored.rows()
    model = task.fit_rows(rows, roster, rng)
    return model, task.cost(model, rows.features, rows.labels, rows.weights, rows.total_weight)


def _what_rows_say(
    task: Task[Any], model: Any, roster: Roster, coreset: Coreset, restored: Restored
) -> tuple[Precise, ErrorsInView | None]:
    rows, noise = restored.rows, restored.noise
    errors = errors_of(task, model, rows, coreset, noise)
    return lambda: precision_of(task, model, rows(), roster, coreset, noise()), errors


def _of_classes(coreset: Coreset, parties: list[WhitenedRows], free: Floats) -> Restored:
    """Restore rows with their classes. What rounding adds to the loss is left: to take it off gains less than it costs.

    To second order it would be a negative ridge on whitened columns, and doubled the excess on one of four tables.
    """
    total, weights = coreset.total_weight, calibrated(coreset, parties, free)
    joined = np.hstack([party.values for party in parties])
    noise = np.concatenate([party.noise(weights) for party in parties])
    features, _ = _restore(joined, parties)
    (labels,) = (exact_label(party) for party in parties if party.label is not None)
    facts = {"weight_change": float(np.abs(weights - coreset.weights).sum() / total)}
    rows = WeightedRows(features, labels, weights, total, coreset.rows)

    @cache
    def rounding() -> Noise:
        spans, _ = directions(parties)
        return Noise(
            features,
            labels,
            np.zeros((len(noise), len(noise))),
            np.diag(noise),
            *_mixing_and_directions(parties, RoundedColumns(joined, weights, noise, spans).hidden()),
            *corrections(coreset, parties, free),
        )

    return Restored(lambda: rows, facts, rounding)


def exact_label(party: WhitenedRows) -> Floats:
    """Give the label, which comes as it is, but where all rows that count have one."""
    (places,) = np.nonzero(party.first == party.label)
    return np.full(len(party.exact), party.mean[-1]) if not len(places) else party.exact[:, places[0]]


def _of_numbers(coreset: Coreset, parties: list[WhitenedRows], free: Floats) -> Restored:
    total = coreset.total_weight
    blocks = [party.values for party in parties]
    spans, label = directions(parties)
    weights = calibrated(coreset, parties, free, (spans, label))
    joined, noise = np.hstack(blocks), np.concatenate([party.noise(weights) for party in parties])
    rounded = RoundedColumns(joined, weights, noise, spans)
    share = rounded.worthwhile_share(label)
    facts = {"weight_change": float(np.abs(weights - coreset.weights).sum() / total), "correction": share}

    @cache
    def rows() -> WeightedRows:
        return WeightedRows(*_restore(rounded.corrected(share), parties), weights, total, coreset.rows)

    @cache
    def rounding() -> Noise:
        left = rounded.left(share)
        noisy_features, noisy_labels = _restore(joined, parties)
        return Noise(
            noisy_features,
            noisy_labels,
            np.diag(noise) - left,
            left,
            *_mixing_and_directions(parties, rounded.hidden()),
            *corrections(coreset, parties, free, (spans, label)),
        )

    return Restored(rows, facts, rounding, _summary(rounded, share, parties))


def _summary(rounded: RoundedColumns, share: float, parties: list[WhitenedRows]) -> Summary | None:
    """Sum up corrected rows, where their covariance tells all of them."""
    triangle = rounded.triangle(share)
    if triangle is None:
        return None
    weight = float(rounded.weights.sum())
    mean = _columns_of(rounded.mean[np.newaxis], parties)[0] + _in_order([party.mean for party in parties], parties)
    return Summary(weight, mean, _columns_of(np.sqrt(weight) * triangle, parties))


def _columns_of(joined: Floats, parties: list[WhitenedRows]) -> Floats:
    """Lead whitened rows, less their mean, (k, r), back to all columns, (k, d + 1), the label's last."""
    ends = np.cumsum([party.values.shape[1] for party in parties])
    parts = np.split(joined, ends[:-1], axis=1)
    return _in_order([part @ party.mixing for part, party in zip(parts, parties, strict=True)], parties)


def _in_order(columns: list[Floats], parties: list[WhitenedRows]) -> Floats:
    """Put columns of all parties, (..., d_j), side by side, the label's last."""
    features = [each if party.label is None else each[..., :-1] for each, party in zip(columns, parties, strict=True)]
    (label,) = (each[..., -1:] for each, party in zip(columns, parties, strict=True) if party.label is not None)
    return np.concatenate([*features, label], axis=-1)


def _mixing_and_directions(parties: list[WhitenedRows], hidden: Floats) -> tuple[Floats, Floats]:
    """Join the mixing matrices of all parties, the label's column last; and give hidden directions as coefficients."""
    mixing = _columns_of(np.eye(len(hidden)), parties)
    if not hidden.shape[1]:
        return mixing, np.empty((0, mixing.shape[1] - 1))
    # Scaled, or columns of large numbers would seem the only ones there are.
    scale = np.linalg.norm(mixing[:, :-1], axis=0)
    scale[scale == 0] = 1.0
    directions = np.linalg.pinv(mixing[:, :-1] / scale, rcond=1e-11) @ hidden / scale[:, np.newaxis]
    return mixing, directions.T


def directions(parties: list[WhitenedRows]) -> tuple[Floats, Floats]:
    """Give the directions of the joined whitened columns that features span, and the label's coordinates."""
    rank = sum(party.values.shape[1] for party in parties)
    spans, label, start = [], np.zeros(rank), 0
    for party in parties:
        r = party.values.shape[1]
        basis = np.eye(r) if party.label is None else _orthonormal(party.mixing[:, :-1])
        own = np.zeros((rank, basis.shape[1]))
        own[start : start + r] = basis
        spans.append(own)
        if party.label is not None:
            label[start : start + r] = party.mixing[:, -1]
        start += r
    return np.hstack(spans), label


def _orthonormal(matrix: Floats) -> Floats:
    scale = np.linalg.norm(matrix, axis=0)
    U, values, _ = np.linalg.svd(matrix / np.where(scale > 0, scale, 1.0), full_matrices=False)
    return U[:, values > 1e-11 * max(values.max(initial=0.0), 1e-300)]


def _restore(joined: Floats, parties: list[WhitenedRows]) -> tuple[Floats, Floats | None]:
    features, labels, start = [], None, 0
    for party in parties:
        r = party.values.shape[1]
        values = mix(joined[:, start : start + r], party.mean, party.mixing)
        # A level that no row has: what arithmetic leaves in its column is no direction of its own.
        still = np.ptp(values, axis=0) <= STILL * np.linalg.norm(party.mixing, axis=0)
        values[:, still] = values[:1, still]
        start += r
        if party.label is not None:
            values, labels = values[:, :-1], values[:, -1]
        features.append(values)
    return np.hstack(features), labels


def _side_by_side(coreset: Coreset, fetched: Fetched) -> Restored:
    features = np.hstack([columns.values for columns in fetched.columns.values()])
    rows = WeightedRows(features, None, coreset.weights, coreset.total_weight, coreset.rows)
    return Restored(lambda: rows, {})
