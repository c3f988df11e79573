"""How a column as it came becomes numbers, in operators. What `apply` refuses is NaN here, and so is all of its row."""

from collections.abc import Sequence

import numpy as np

from colonnade.options import LARGEST
from colonnade.preparation.columns import AnyColumn, CategoryColumn, DateColumn, NumberColumn, Scaled
from colonnade.preparation.levels import MISSING
from colonnade.tasks.to_onnx.dates import date_parts
from colonnade.tasks.to_onnx.graph import ML, Graph, Kind

REFUSED = -1  # in place of a level's place
KINDS = {NumberColumn: Kind.NUMBER, CategoryColumn: Kind.TEXT, DateColumn: Kind.WHOLE}


def kind_of(column: AnyColumn | None) -> Kind:
    """Say what the input of a column holds; None is a column that enters as it is."""
    return Kind.NUMBER if column is None else KINDS[type(column)]


def prepared(graph: Graph, column: AnyColumn, values: str) -> str:
    """Make the columns of an input: (rows, as many as it has names)."""
    if isinstance(column, NumberColumn):
        return _number(graph, column, values)
    return _category(graph, column, values) if isinstance(column, CategoryColumn) else _date(graph, column, values)


def finite(graph: Graph, values: str, most: float = float(np.finfo(np.float64).max)) -> str:
    """Put NaN in the place of what is larger in size than this."""
    held = graph.node("LessOrEqual", graph.node("Abs", values), graph.constant(most))
    return graph.node("Where", held, values, graph.constant(np.nan))


def joined(graph: Graph, parts: Sequence[str]) -> str:
    """Put columns beside each other."""
    return parts[0] if len(parts) == 1 else graph.node("Concat", *parts, axis=1)


def _number(graph: Graph, column: NumberColumn, values: str) -> str:
    gaps = graph.node("IsNaN", values)
    filled = _filled(graph, column.scaling, gaps, finite(graph, values, LARGEST))
    # By comparisons, which leave NaN as it is; Clip does not.
    for bound, compare in ((column.at_least, "Less"), (column.at_most, "Greater")):
        if bound is not None:
            edge = graph.constant(bound)
            filled = graph.node("Where", graph.node(compare, filled, edge), edge, filled)
    shaped = _log1p(graph, filled) if column.log else filled
    return _marked(graph, [_scaled(graph, column.scaling, shaped)], gaps, column.indicator)


def _date(graph: Graph, column: DateColumn, moments: str) -> str:
    gaps, parts = date_parts(graph, moments, [part for part, _ in column.parts])
    made = [
        _scaled(graph, scaling, _filled(graph, scaling, gaps, part))
        for (_, scaling), part in zip(column.parts, parts, strict=True)
    ]
    return _marked(graph, made, gaps, column.indicator)


def _category(graph: Graph, column: CategoryColumn, texts: str) -> str:
    """Look up the place of each level; 0 is the reference, which has no column, and so is what is beyond them."""
    places = {level: min(place, len(column.levels) + 1) for place, level in enumerate(column.known)}
    unseen = REFUSED if column.unknown == "error" else len(column.levels) + 1
    # Empty text is missing, and a level only by that name.
    places[""] = REFUSED if column.missing == "error" else places.get(MISSING, unseen)
    encoded = {"keys_strings": list(places), "values_int64s": list(places.values()), "default_int64": unseen}
    found = graph.node("LabelEncoder", texts, domain=ML, **encoded)
    marks = graph.node("Equal", found, graph.constant(np.arange(1, len(column.names) + 1)[np.newaxis]))
    refused = graph.node("Equal", found, graph.constant(np.int64(REFUSED)))
    return graph.node("Where", refused, graph.constant(np.nan), graph.double(marks))


def _filled(graph: Graph, scaling: Scaled, gaps: str, values: str) -> str:
    return values if scaling.fill is None else graph.node("Where", gaps, graph.constant(scaling.fill), values)


def _scaled(graph: Graph, scaling: Scaled, values: str) -> str:
    if (scaling.mean, scaling.deviation) == (0.0, 1.0):
        return values
    apart = graph.node("Sub", values, graph.constant(scaling.mean))
    return graph.node("Div", apart, graph.constant(scaling.deviation))


def _log1p(graph: Graph, values: str) -> str:
    """Compute log(1 + x) to the last digits for small x too: what 1 + x loses, x / ((1 + x) - 1) brings back."""
    one = graph.constant(1.0)
    above = graph.node("Add", values, one)
    kept = graph.node("Sub", above, one)
    exact = graph.node("Mul", graph.node("Log", above), graph.node("Div", values, kept))
    found = graph.node("Where", graph.node("Equal", kept, graph.constant(0.0)), values, exact)
    return graph.node("Where", graph.node("Greater", values, graph.constant(-1.0)), found, graph.constant(np.nan))


def _marked(graph: Graph, made: list[str], gaps: str, indicator: bool) -> str:
    return joined(graph, [*made, graph.double(gaps)] if indicator else made)
