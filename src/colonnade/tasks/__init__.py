"""Tasks: what to learn, and the model that comes of it. One idea a file; the registry is at the end of this one."""

from colonnade.tasks.kmeans import KMeans
from colonnade.tasks.models import AnyModel, KMeansModel, LinearModel, load_model
from colonnade.tasks.regression import Regression

AnyTask = Regression | KMeans

__all__ = ["AnyModel", "AnyTask", "KMeans", "KMeansModel", "LinearModel", "Regression", "load_model"]
