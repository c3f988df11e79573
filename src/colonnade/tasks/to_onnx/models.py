"""Models as ONNX graphs that take columns as they came; each gives what its parts add up to, beside its predictions."""

from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.preparation.columns import AnyColumn
from colonnade.tasks.model_columns import columns_of, preparation_of
from colonnade.tasks.to_onnx.columns import finite, joined, kind_of, prepared
from colonnade.tasks.to_onnx.graph import Graph, Kind, clean

NO_CLUSTER = -1  # of a row that is refused
NO_CLASS = int(np.iinfo(np.int64).min)


@dataclass(frozen=True)
class Source:
    """A column as it came, and what is made of it; None where it enters as it is."""

    party: str
    column: str
    prepared: AnyColumn | None


def linear(model: Any) -> Any:
    """Make the graph of a LinearModel: `prediction`."""
    begun = _begun(model)
    graph, features = begun.graph, begun.features
    products = graph.node("MatMul", features, graph.constant(model.coef_))
    graph.output("prediction", graph.node("Add", products, graph.constant(float(model.intercept_))), Kind.NUMBER)
    return _closed(begun, model, "regression")


def classification(model: Any) -> Any:
    """Make the graph of a ClassificationModel: `label`, `probabilities`, and `logits`, which parts add up to."""
    begun = _begun(model)
    graph, features = begun.graph, begun.features
    two = len(model.classes_) == 2
    coef, intercept = (model.coef_[0], model.intercept_[0]) if two else (model.coef_.T, model.intercept_)
    products = graph.node("MatMul", features, graph.constant(coef))
    logits = graph.node("Add", products, graph.constant(intercept))
    chances = _two_chances(graph, logits) if two else graph.node("Softmax", logits, axis=1)
    likely = graph.node("ArgMax", chances, axis=1, keepdims=0)
    classes, none, kind = _classes(model.classes_)
    named = graph.node("Gather", graph.constant(classes), likely)
    label = graph.node("Where", _has_nan(graph, chances), graph.constant(none), named)
    graph.output("label", label, kind)
    graph.output("probabilities", chances, Kind.NUMBER, len(model.classes_))
    graph.output("logits", logits, Kind.NUMBER, None if two else len(model.classes_))
    return _closed(begun, model, "classification", classes=classes.tolist())


def kmeans(model: Any) -> Any:
    """Make the graph of a KMeansModel: `label`, `distances`, and `squared_distances`, which parts add up to."""
    begun = _begun(model)
    graph, features = begun.graph, begun.features
    centers: Floats = model.cluster_centers_
    scale = None if model.scale_ is None else graph.constant(model.scale_)
    columns = graph.constant(np.array([1]))

    def squared(center: str) -> str:
        # Differences first: squares of large columns would cancel. One centre after another, which takes least memory.
        apart = graph.node("Sub", features, center)
        apart = apart if scale is None else graph.node("Div", apart, scale)
        return graph.node("ReduceSumSquare", apart, columns, keepdims=0)

    squares = graph.each(graph.constant(centers), squared, centers.shape[1])
    nearest = graph.node("ArgMin", squares, axis=1, keepdims=0)
    label = graph.node("Where", _has_nan(graph, squares), graph.constant(np.int64(NO_CLUSTER)), nearest)
    graph.output("label", label, Kind.WHOLE)
    graph.output("distances", graph.node("Sqrt", squares), Kind.NUMBER, len(centers))
    graph.output("squared_distances", squares, Kind.NUMBER, len(centers))
    return _closed(begun, model, "kmeans")


def _sources(model: Any) -> list[Source]:
    """List the columns that a model takes: as they came, where it is known how its parties prepared them."""
    parts = model.parts_ or {"": len(model.feature_names_in_)}
    return [source for party in parts for source in _sources_of(party, model)]


def _sources_of(party: str, model: Any) -> list[Source]:
    names = model.feature_names_in_[columns_of(model.parts_, party)] if model.parts_ else model.feature_names_in_
    preparation = preparation_of(model, party)
    if preparation is None:
        return [Source(party, name, None) for name in names]
    return [Source(party, column.column, column) for column in preparation.columns if column.names]


@dataclass(frozen=True)
class _Begun:
    """A graph that has a model's columns, and its features, (rows, n_features)."""

    graph: Graph
    sources: list[Source]
    features: str


def _begun(model: Any) -> _Begun:
    if not model.feature_names_in_:
        raise InputError("A model without features takes no columns. Take the part of a party that has some.")
    found = _sources(model)
    graph = Graph([(source.party, source.column) for source in found])
    made, plain = [], []
    for place, source in enumerate(found):
        values = graph.input(place, kind_of(source.prepared))
        if source.prepared is None:
            plain.append(values)
            continue
        made += _flushed(graph, plain)
        made.append(prepared(graph, source.prepared, values))
    return _Begun(graph, found, joined(graph, made + _flushed(graph, plain)))


def _flushed(graph: Graph, plain: list[str]) -> list[str]:
    """Put columns that enter as they are beside each other, and take them off the list."""
    found = [finite(graph, joined(graph, plain))] if plain else []
    plain.clear()
    return found


def _two_chances(graph: Graph, logits: str) -> str:
    """Compute both chances, of any logit, as `predict_proba` does: small ones to their last digits."""
    shrunk = graph.node("Exp", graph.node("Neg", graph.node("Abs", logits)))
    one = graph.constant(1.0)
    larger = graph.node("Div", one, graph.node("Add", one, shrunk))
    is_positive = graph.node("GreaterOrEqual", logits, graph.constant(0.0))
    last = graph.node("Where", is_positive, larger, graph.node("Mul", shrunk, larger))
    columns = graph.constant(np.array([1]))
    both = (graph.node("Sub", one, last), last)
    return graph.node("Concat", *(graph.node("Unsqueeze", each, columns) for each in both), axis=1)


def _has_nan(graph: Graph, values: str) -> str:
    return graph.node("IsNaN", graph.node("ReduceSum", values, graph.constant(np.array([1])), keepdims=0))


def _classes(names: tuple[Any, ...]) -> tuple[Any, Any, Kind]:
    """Give the classes, what stands for none, and what they are."""
    if any(isinstance(name, str) for name in names):
        return np.array([clean(name) for name in names], dtype=object), np.array("", dtype=object), Kind.TEXT
    if all(isinstance(name, int) and abs(name) < -NO_CLASS for name in names):
        return np.array(names, dtype=np.int64), np.int64(NO_CLASS), Kind.WHOLE
    return np.array(names, dtype=np.float64), np.nan, Kind.NUMBER


def _closed(begun: _Begun, model: Any, task: str, **more: Any) -> Any:
    inputs = [
        {"name": name, "party": clean(each.party), "column": clean(each.column), "kind": kind_of(each.prepared)}
        for name, each in zip(begun.graph.input_names, begun.sources, strict=True)
    ]
    features, parties = ([clean(name) for name in names] for names in (model.feature_names_in_, model.parts_))
    told = {"parties": parties, "features": features, "inputs": inputs, **more}
    written = {f"colonnade.{name}": msgspec.json.encode(value).decode() for name, value in told.items()}
    return begun.graph.model({"colonnade.task": task, **written})
