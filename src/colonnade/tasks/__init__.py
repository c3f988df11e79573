"""Tasks: what to learn, and the model that comes of it. One task a file, its model in another; `registry` names them.

`jobs` are the scripts of whole jobs, whatever the task.
"""

from colonnade.tasks.classification import Classification
from colonnade.tasks.classification_model import ClassificationModel
from colonnade.tasks.kmeans import KMeans
from colonnade.tasks.kmeans_model import KMeansModel
from colonnade.tasks.linear_model import LinearModel
from colonnade.tasks.registry import MODELS, AnyTask, PaperTask, load_model
from colonnade.tasks.regression import Regression

__all__ = [
    "MODELS",
    "AnyTask",
    "Classification",
    "ClassificationModel",
    "KMeans",
    "KMeansModel",
    "LinearModel",
    "PaperTask",
    "Regression",
    "load_model",
]
