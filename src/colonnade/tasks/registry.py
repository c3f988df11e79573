"""The registry of tasks: a new one is a file in this folder and a name in `AnyTask`. Models come with their tasks."""

from functools import reduce
from operator import or_
from typing import Any, get_args

from colonnade.contracts import Model
from colonnade.storage import AnyPath, Folder, reading
from colonnade.tasks.classification import Classification
from colonnade.tasks.kmeans import KMeans
from colonnade.tasks.model_files import MODEL, unpack
from colonnade.tasks.regression import Regression

AnyTask = Regression | Classification | KMeans
# Tasks whose theory is known, those of the paper among them: these can be diagnosed, certified and planned.
PaperTask = Regression | Classification | KMeans

MODELS: tuple[type[Model[Any]], ...] = tuple(task.model for task in get_args(AnyTask))


def load_model(path: AnyPath) -> Model[Any]:
    """Read a model of any kind from its folder, or from that of a run."""
    with reading(path, MODEL) as folder:
        return read_model(folder)


def read_model(folder: Folder) -> Model[Any]:
    """Do the work of `load_model` where errors of reading are already looked after."""
    kinds = {model.record: model for model in MODELS}
    record, features, numbers = unpack(folder, reduce(or_, kinds))
    return kinds[type(record)].restored(record, features, numbers)
