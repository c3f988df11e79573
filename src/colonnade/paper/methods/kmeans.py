"""Kmeans++: the rows go to the server, which clusters them from several k-means++ starts."""

from colonnade.paper.methods.method import Method, through_federation
from colonnade.solvers import Central

METHOD = Method("Kmeans++", through_federation(Central()), quick_repeats=5)
