"""What was learned: weights of rows, coefficients or centres."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from colonnade.coreset import unlisted
from colonnade.errors import AssumptionWarning, UnsupportedError
from colonnade.number_words import count, per_cent, value
from colonnade.report import figures, known
from colonnade.report.figures import CoefficientBar
from colonnade.report.sections import Section, Shown
from colonnade.report.tables import Cell, Line, Table, name, number, table, text
from colonnade.run import Run
from colonnade.tasks.model_columns import own_names
from colonnade.tasks.summary import INTERCEPT, Summary

ALL_OF_THE_MODEL = "All of it is in the run's folder (model.arrow), and run.model.table() prints it."
# Of clusters, and of classes, so many have a column of their own.
MOST_COLUMNS = 12
# Weights of so many rows are sorted and drawn, 128 MB of them; of more, the least and the largest are told.
MOST_SORTED = 1 << 24
# What is nearer to 0 is what rounding leaves of it.
NOTHING = 1e-12


def weights_section(run: Run[Any]) -> Section:
    """Show how even the weights are."""
    coreset, title = run.coreset, "Weights of the rows"
    effective, size, least = coreset.effective_size, len(coreset), coreset.least_weight
    words = (
        f"Each of {count(size)} drawn rows stands for others, by its weight. They are as steady as "
        f"{count(effective)} rows of equal weight ({per_cent(effective / size)}).",
    )
    if known.took_all_rows(run):
        words = (f"All {count(size)} rows that count were taken, none stands for others.",)
        if least == coreset.largest_weight:
            return Section("weights", title, (*words, f"Each has weight {value(least)}."))
    if size > MOST_SORTED or unlisted(coreset, MOST_SORTED):
        return Section(
            "weights", title, (*words, f"Weights go from {value(least)} to {value(coreset.largest_weight)}.")
        )
    shares = (
        (0.0, "least"),
        (0.25, "a quarter is below"),
        (0.5, "middle"),
        (0.75, "a quarter is above"),
        (1.0, "most"),
    )
    lines = [
        (text(title), number(float(found), value(float(found))))
        for (_, title), found in zip(shares, np.quantile(coreset.weights, [share for share, _ in shares]), strict=True)
    ]
    weighed = table("Weights of rows", ("of all weights", "weight"), lines, all_of_it="")
    return Section("weights", title, words, (Shown(figures.weights(coreset), weighed),))


def model_section(run: Run[Any]) -> Section | None:
    """Show the model, in the data's own units."""
    if run.model is None:
        return None
    if hasattr(run.model, "cluster_centers_"):
        return _centres(run)
    if hasattr(run.model, "coef_"):
        return _coefficients(run)
    return Section("model", "Model", code=run.model.table()[:20_000])


def summary_of(run: Run[Any]) -> tuple[Summary | None, tuple[str, ...]]:
    """Give coefficients with intervals, or none, and what there is to say of them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", AssumptionWarning)
        try:
            found = run.summary()
        except UnsupportedError as error:
            return None, (f"There are no intervals: {error}",)
    said = [str(each.message) for each in caught if issubclass(each.category, AssumptionWarning)]
    return found, tuple(said)


def zeroed(number: float) -> float:
    """Take what rounding leaves of 0 for it."""
    return 0.0 if abs(number) < NOTHING else float(number)


def _coefficients(run: Run[Any]) -> Section:
    summary, remarks = summary_of(run)
    if len(np.atleast_2d(run.model.coef_)) > 1:
        return _by_class(run)
    lines = list(_with_intervals(summary) if summary is not None else _without(run))
    bars = [
        CoefficientBar(party, feature, coefficient, low, high)
        for party, feature, coefficient, low, high, *_ in lines
        if feature != INTERCEPT
    ]
    head = ["party", "feature", "coefficient"]
    if summary is not None:
        head += ["low", "high", "p"]
    cells = [_coefficient_line(line, len(head)) for line in lines]
    shown = table("Coefficients, in the data's own units", head, cells, all_of_it=ALL_OF_THE_MODEL)
    words = [_meaning(run)]
    if summary is not None:
        words.append(f"Low and high are the ends of {per_cent(summary.confidence).replace('.0', '')} intervals.")
        words += summary.notes
    return Section("model", "Model", (*words, *_path(run)), (Shown(figures.coefficients(bars)),), (shown,), remarks)


def _meaning(run: Run[Any]) -> str:
    classes = getattr(run.model, "classes_", None)
    if classes is None:
        return f"A coefficient says by how much {name(known.label(run))} changes where its column is higher by 1."
    return (
        "A coefficient says by how much the log of the odds of "
        f"{name(classes[-1])} changes where its column is higher by 1."
    )


def _with_intervals(summary: Summary) -> Iterator[tuple[Any, ...]]:
    for each in summary.coefficients:
        low, high = (None if end is None else zeroed(end) for end in (each.low, each.high))
        yield each.party or "", each.feature, zeroed(each.coefficient), low, high, each.p_value


def _without(run: Run[Any]) -> Iterator[tuple[Any, ...]]:
    yield "", INTERCEPT, zeroed(float(np.ravel(run.model.intercept_)[0])), None, None, None
    for party, feature, coefficient in zip(
        _parties(run), own_names(run.model), np.ravel(run.model.coef_).tolist(), strict=True
    ):
        yield party, feature, zeroed(coefficient), None, None, None


def _coefficient_line(line: tuple[Any, ...], width: int) -> Line:
    party, feature, coefficient, low, high, p = line
    cells = [text(party), text(feature), number(coefficient, value(coefficient))]
    if width > len(cells):
        ends = [Cell("undefined") if end is None else number(end, value(end)) for end in (low, high)]
        cells += [*ends, Cell("") if p is None else number(p, _chance(p))]
    return cells


def _chance(p: float) -> str:
    return "below 0.0001" if p < 1e-4 else f"{p:.4f}"


def _by_class(run: Run[Any]) -> Section:
    classes = run.model.classes_[:MOST_COLUMNS]
    coefficients = run.model.coef_[: len(classes)]
    lines = [
        [text(party), text(feature), *(number(zeroed(each), value(zeroed(each))) for each in values)]
        for party, feature, values in [
            ("", INTERCEPT, run.model.intercept_[: len(classes)].tolist()),
            *zip(_parties(run), own_names(run.model), coefficients.T.tolist(), strict=True),
        ]
    ]
    words = ["The class with the largest sum of coefficients times columns is the most likely.", *_path(run)]
    words += _left_out(len(run.model.classes_), "classes")
    shown = table(
        "Coefficients of each class", ["party", "feature", *map(str, classes)], lines, all_of_it=ALL_OF_THE_MODEL
    )
    return Section("model", "Model", tuple(words), (), (shown,))


def _centres(run: Run[Any]) -> Section:
    model, report = run.model, run.findings.evaluation
    sizes = list(getattr(report, "cluster_sizes", ()))
    values = np.where(np.abs(model.cluster_centers_) < NOTHING, 0.0, model.cluster_centers_)
    features, parties = own_names(model), _parties(run)
    # A file that somebody wrote may have others.
    figure = figures.centres(values, features, parties, sizes if len(sizes) == len(values) else None)
    shown = values[:MOST_COLUMNS]
    lines = [
        [text(party), text(feature), *(number(each, value(each)) for each in column)]
        for party, feature, column in zip(parties, features, shown.T.tolist(), strict=True)
    ]
    head = ["party", "feature", *(f"cluster {place}" for place in range(len(shown)))]
    tables = [table("Centres, in the data's own units", head, lines, all_of_it=ALL_OF_THE_MODEL)]
    words = ["A centre is the mean of its cluster's rows, column by column.", *_left_out(len(values), "clusters")]
    if sizes:
        tables.insert(0, _sizes(sizes))
    return Section("model", "Clusters", tuple(words), (Shown(figure),), tuple(tables))


def _sizes(sizes: Sequence[int]) -> Table:
    whole = max(sum(sizes), 1)
    lines = [
        (number(place, f"cluster {place}"), number(size, count(size)), number(size, per_cent(size / whole)))
        for place, size in enumerate(sizes)
    ]
    return table(
        "Rows of each cluster, of those evaluated", ("cluster", "rows", "share"), lines, all_of_it=ALL_OF_THE_MODEL
    )


def _left_out(n: int, things: str) -> list[str]:
    if n <= MOST_COLUMNS:
        return []
    return [f"The table has the first {MOST_COLUMNS} of {count(n)} {things}. {ALL_OF_THE_MODEL}"]


def _path(run: Run[Any]) -> Iterator[str]:
    path = getattr(run.model, "path", None)
    if path is not None:
        yield (
            f"The penalty was chosen by cross-validation: l2 = {value(path.chosen.l2)}, l1 = {value(path.chosen.l1)}, "
            f"of {count(len(path.points))} that were tried."
        )


def _parties(run: Run[Any]) -> list[str]:
    parts = run.model.parts_ or {"": len(run.model.feature_names_in_)}
    return [party for party, width in parts.items() for _ in range(width)]
