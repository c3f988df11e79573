"""Played by test_adding.py in a copy of the library that has the toy sampler: it draws, and obeys the laws."""

import runpy

import msgspec
import numpy as np

import colonnade as cn
from adding.laws import PROJECT, try_laws
from colonnade import Told  # it is in the copy
from colonnade.cli.job import Job

X = np.random.default_rng(0).normal(size=(40, 4))
federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0, 3.0, 4.0] + 5.0, [2, 2]))
run = federation.fit(cn.Regression(), sampler=Told(30), solver=cn.Central())
assert np.allclose([*run.model.coef_, run.model.intercept_], [1, 2, 3, 4, 5])
assert cn.Run.load(run.save("run")).sampler == Told(30)
job = '[[party]]\nname="a"\nfile="a.csv"\n[task]\nkind="regression"\n[sampler]\nkind="told"\nsize=30\n'
assert msgspec.toml.decode(job, type=Job).sampler == Told(30)
assert "| `Told` |" in runpy.run_path(str(PROJECT / "scripts" / "reference.py"))["api_page"]()
try_laws("test_samplers.py", "Told", "Regression")
