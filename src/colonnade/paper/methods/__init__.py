"""The methods of the paper's tables, one file each; the registry is here."""

from colonnade.paper.methods import central, distdim, kmeans, saga
from colonnade.paper.methods.method import Method, Outcome

METHODS = {module.METHOD.name: module.METHOD for module in (central, saga, kmeans, distdim)}

__all__ = ["METHODS", "Method", "Outcome"]
