"""Central: the rows go to the server, which solves the regression there."""

from colonnade.paper.methods.method import Method, through_federation
from colonnade.solvers import Central

METHOD = Method("Central", through_federation(Central()), quick_repeats=10)
