"""A graph of ONNX operators that is put together node by node; columns give it names, which are untrusted text."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt

from colonnade.errors import InputError, UnsupportedError
from colonnade.storage import written_by

# Fixed, so that a newer onnx writes what runtimes of before know: ONNX 1.13, of 2022.
IR_VERSION, OPSET, ML_OPSET = 8, 18, 3
ML = "ai.onnx.ml"
# Protocol buffers hold no more.
MAX_BYTES = 2**31 - 1
ROWS = "rows"


class Kind(StrEnum):
    """What an input or output holds."""

    NUMBER = "number"
    WHOLE = "whole number"
    TEXT = "text"


class Graph:
    """Nodes, constants, inputs and outputs, each under a name that no other has.

    Parameters
    ----------
    wanted : sequence of (str, str)
        The party and the name of each column that is an input. A name that only one has is kept; otherwise the party
        stands before it; what is left alike is numbered, and what cannot be a name is replaced.
    """

    def __init__(self, wanted: Sequence[tuple[str, str]]) -> None:
        self._onnx = _onnx()
        self.input_names = distinct(wanted)
        self._taken = set(self.input_names)
        self._numbers = count()
        self._inputs: list[Any] = []
        self._outputs: list[Any] = []
        self._nodes: list[Any] = []
        self._constants: list[Any] = []

    def input(self, place: int, kind: Kind) -> str:
        """Add the input of the column at this place, one value a row."""
        name = self.input_names[place]
        self._inputs.append(self._value(name, kind, [ROWS, 1]))
        return name

    def output(self, name: str, value: str, kind: Kind, width: int | None = None) -> None:
        """Give a value out, (rows,) or (rows, width); where a column is called as it should be, by another name."""
        while name in self._taken:
            name = f"output_{name}"
        self._taken.add(name)
        self._nodes.append(self._onnx.helper.make_node("Identity", [value], [name]))
        self._outputs.append(self._value(name, kind, [ROWS] if width is None else [ROWS, width]))

    def node(self, operator: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add an operator, and name what it gives."""
        name = self._fresh()
        self._nodes.append(self._onnx.helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def constant(self, values: npt.ArrayLike) -> str:
        """Add numbers or texts."""
        array, name = np.asarray(values), self._fresh()
        if array.dtype.kind in "UO":
            array = np.vectorize(clean, otypes=[object])(array)
        self._constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def double(self, values: str) -> str:
        """Take marks or whole numbers as float64."""
        return self.node("Cast", values, to=self._onnx.TensorProto.DOUBLE)

    def each(self, items: str, inner: Callable[[str], str], width: int) -> str:
        """Do the same with each row of a constant, (k, width); what comes of them, (rows,) each, gives (rows, k)."""
        outside, self._nodes = self._nodes, []
        item = self._fresh()
        found = inner(item)
        body = self._onnx.helper.make_graph(
            self._nodes,
            self._fresh(),
            [self._value(item, Kind.NUMBER, [width])],
            [self._value(found, Kind.NUMBER, [ROWS])],
        )
        self._nodes = outside
        return self.node("Transpose", self.node("Scan", items, body=body, num_scan_inputs=1), perm=[1, 0])

    def model(self, told: Mapping[str, str]) -> Any:
        """Close the graph: an `onnx.ModelProto`, which the checker has passed, that tells these things of itself."""
        helper, version = self._onnx.helper, written_by()["colonnade"]
        graph = helper.make_graph(self._nodes, "colonnade", self._inputs, self._outputs, self._constants)
        sets = [helper.make_opsetid("", OPSET), helper.make_opsetid(ML, ML_OPSET)]
        model = helper.make_model(
            graph, opset_imports=sets, ir_version=IR_VERSION, producer_name="colonnade", producer_version=version
        )
        helper.set_model_props(model, {"colonnade.version": version, **told})
        if (size := model.ByteSize()) > MAX_BYTES:
            raise UnsupportedError(
                f"The model takes {size:,} bytes as ONNX, which holds {MAX_BYTES:,}. Export the parts of its parties."
            )
        self._onnx.checker.check_model(model, full_check=True)
        return model

    def _fresh(self) -> str:
        name = next(name for number in self._numbers if (name := f"_{number}") not in self._taken)
        self._taken.add(name)
        return name

    def _value(self, name: str, kind: Kind, shape: list[int | str]) -> Any:
        proto = self._onnx.TensorProto
        types = {Kind.NUMBER: proto.DOUBLE, Kind.WHOLE: proto.INT64, Kind.TEXT: proto.STRING}
        return self._onnx.helper.make_tensor_value_info(name, types[kind], shape)


def distinct(wanted: Sequence[tuple[str, str]]) -> list[str]:
    """Name columns, given by party and name, so that no two are called alike, and none is called nothing."""
    plain = [clean(name) or "column" for _, name in wanted]
    longer = [f"{clean(party)}.{name}" if party else name for (party, _), name in zip(wanted, plain, strict=True)]
    times, others = Counter(plain), Counter(longer)
    taken = {name for name in plain if times[name] == 1}  # these stay as they are, whatever others are called
    names = []
    for name, other in zip(plain, longer, strict=True):
        if times[name] == 1:
            names.append(name)
            continue
        candidates = (other if number == 0 else f"{other} ({number})" for number in count(int(others[other] > 1)))
        names.append(next(candidate for candidate in candidates if candidate not in taken))
        taken.add(names[-1])
    return names


def clean(text: object) -> str:
    """Replace what ONNX's texts cannot hold: half characters, and the character that ends a text in C."""
    return str(text).encode("utf-8", "replace").decode().replace("\0", "?")


def _onnx() -> Any:
    try:
        import onnx
        import onnx.checker
        import onnx.helper
        import onnx.numpy_helper
    except ImportError as error:
        raise InputError(
            f"An ONNX model needs the package {error.name}, which is not installed. Run: pip install "
            "'colonnade[export]'"
        ) from error
    return onnx
