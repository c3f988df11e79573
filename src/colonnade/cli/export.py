"""`colonnade export`."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from zipfile import ZIP_DEFLATED

import typer

from colonnade.cli.console import JsonFlag, say, show_json, write_new
from colonnade.errors import InputError
from colonnade.job_inputs import read_model
from colonnade.node.part_files import read_part
from colonnade.options import listed
from colonnade.tasks.to_sklearn import skops_types

Model = Annotated[
    Path,
    typer.Argument(
        help="Folder of a saved run or model; at a party, part-NAME.json in its state folder.", metavar="RUN"
    ),
]
OutOption = Annotated[
    Path, typer.Option("--out", "-o", help="A new file, whose ending says what it is: .onnx or .skops.")
]
PartyOption = Annotated[str | None, typer.Option("--party", help="Export this party's part only.", metavar="NAME")]


def command(run: Model, out: OutOption, party: PartyOption = None, json: JsonFlag = False) -> None:
    """Write a saved model for other programs: an ONNX graph, or a scikit-learn estimator kept by skops. Sends nothing.

    It takes columns as they came where the model has how parties prepared them. Parts' outputs add up to the whole's,
    with the intercept.

    Example: colonnade export run -o model.onnx
    """
    write = FORMATS.get(out.suffix.lower())
    if write is None:
        raise InputError(f"{out} ends in none of: {', '.join(FORMATS)}. Name the file so that it says what it is.")
    content, facts = write(_model(run, party))
    write_new(out, content)
    told = {"file": str(out), "bytes": len(content), **facts}
    if json:
        show_json(told)
    else:
        say(_words(told))


def _model(path: Path, party: str | None) -> Any:
    if path.is_file():
        return read_part(path, party or "")
    model: Any = read_model(path)[0]
    return model if party is None else model.part(party)


def _onnx(model: Any) -> tuple[bytes, dict[str, Any]]:
    graph = _method(model, "to_onnx")()
    names = {"inputs": [each.name for each in graph.graph.input], "outputs": [each.name for each in graph.graph.output]}
    return graph.SerializeToString(), {"format": "onnx", **names}


def _skops(model: Any) -> tuple[bytes, dict[str, Any]]:
    try:
        import skops.io
    except ImportError as error:
        raise InputError(
            f"A .skops file needs the package {error.name}, which is not installed. Run: pip install "
            "'colonnade[export]'"
        ) from error
    content = skops.io.dumps(_method(model, "to_sklearn")(), compression=ZIP_DEFLATED)
    found = skops.io.get_untrusted_types(data=content)
    return content, {"format": "skops", "trusted": [each for each in skops_types() if each in found]}


def _method(model: Any, name: str) -> Callable[[], Any]:
    """Take it, where it is there: tasks that others add may have models without it."""
    if not hasattr(model, name):
        raise InputError(f"A {type(model).__name__} has no {name}. Use the model with colonnade itself.")
    found: Callable[[], Any] = getattr(model, name)
    return found


def _words(told: dict[str, Any]) -> str:
    wrote = f"Written to {told['file']}, {told['bytes']:,} bytes."
    if told["format"] == "onnx":
        inputs, outputs = (listed([repr(name) for name in told[which]]) for which in ("inputs", "outputs"))
        return f"{wrote}\nInputs: {inputs}.\nOutputs: {outputs}."
    trusted = ", trusted=colonnade.skops_types()" if told["trusted"] else ""
    return f"{wrote}\nRead it with skops.io.load({told['file']!r}{trusted})."


FORMATS = {".onnx": _onnx, ".skops": _skops}
