"""DistDim: each party clusters its own columns, the server the combinations of their centres."""

from colonnade.paper.methods.method import Method, through_federation
from colonnade.solvers import DistDim

METHOD = Method("DistDim", through_federation(DistDim()), quick_repeats=5, repeats_on_all_rows=True)
