"""A party's part of a model, which its state folder keeps beside the preparation of its columns, read without trust."""

from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import numpy as np

from colonnade.errors import InputError
from colonnade.kernels.arrays import Floats
from colonnade.node.preparation_files import PreparationFiles
from colonnade.options import learn_types
from colonnade.protocol.fingerprints import Tables
from colonnade.storage import read_json
from colonnade.tasks import ClassificationModel, KMeansModel, LinearModel

Numbers: TypeAlias = list[float | list[float]]


class _KeptPart(msgspec.Struct):
    """What `part-NAME.json` says."""

    prepared: str
    columns: tuple[str, ...]
    coef: Numbers | None
    centers: Numbers | None
    scale: Numbers | None


def read_part(path: Path, party: str) -> Any:
    """Make a model of what `PreparationFiles.keep_part` wrote, with the preparation beside it.

    The intercept and the names of classes are not in it, since parties do not learn them: of two classes it is a linear
    model, whose predictions are the party's part of the logits; of more, classes have numbers.
    """
    try:
        kept: _KeptPart = read_json(path, _KeptPart)
        if (fitted := PreparationFiles(path.parent, lambda _: None).find(kept.prepared)) is None:
            raise ValueError(f"prepared-{kept.prepared[:32]}.json is not beside it")
        return _model(kept, party, Tables(0, preparations={party: fitted.decode()}))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{path} is not a readable part of a model: {str(error).rstrip('.')}. Pass part-NAME.json in a party's "
            "state folder, or the folder of a run."
        ) from error


def _model(kept: _KeptPart, party: str, tables: Tables) -> Any:
    parts = {party: len(kept.columns)}
    coef, centers, scale = map(_array, (kept.coef, kept.centers, kept.scale))
    if centers is not None:
        return KMeansModel(centers, kept.columns, scale, parts, tables)
    if coef is None:
        raise ValueError("it has neither coefficients nor centres")
    if coef.ndim == 1:
        return LinearModel(coef, 0.0, kept.columns, parts_=parts, scale_=scale, learned_from_=tables)
    classes = tuple(range(len(coef)))
    told = (None, parts, scale, tables)
    return ClassificationModel(coef, np.zeros(len(coef)), classes, kept.columns, *told)


def _array(numbers: Numbers | None) -> Floats | None:
    return None if numbers is None else np.array(numbers, dtype=np.float64)


learn_types(_KeptPart)
