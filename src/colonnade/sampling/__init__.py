"""Samplers: how server and parties agree on a coreset. The registry of them, and of what parties answer, is here.

`importance` is the sampler of the paper. Its scripts are a folder each, with `messages`, `server` and `party`: `plain`
is Algorithm 1, `distinct` draws each row once at most, `secure` sums scores under masks, `committed` draws so that
anybody can check. How rows are scored
is in `rules`, how many can be drawn in `size`, what they weigh in `weights`. `baselines` are what a coreset is compared
with; `selecting` tells parties rows that need no scores.
"""

from colonnade.sampling import committed, distinct, plain, secure, selecting
from colonnade.sampling.baselines import AllRows, UniformSampling
from colonnade.sampling.importance import ImportanceSampling

AnySampler = ImportanceSampling | UniformSampling | AllRows
HANDLERS = (*plain.HANDLERS, *distinct.HANDLERS, *committed.HANDLERS, *secure.HANDLERS, *selecting.HANDLERS)

__all__ = ["HANDLERS", "AllRows", "AnySampler", "ImportanceSampling", "UniformSampling"]
