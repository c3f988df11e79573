"""Played by test_adding.py in a copy of the library that has the toy solver: it solves, and obeys the laws."""

import numpy as np
import pytest

import colonnade as cn
from adding.laws import try_laws
from colonnade import Gathered  # it is in the copy
from colonnade.transports.loopback import Loopback

X = np.random.default_rng(0).normal(size=(40, 4))
parties = cn.split_columns(X, X @ [1.0, 2.0, 3.0, 4.0] + 5.0, [2, 2])
run = cn.Federation(parties, transport=Loopback).fit(cn.Regression(), sampler=cn.AllRows(), solver=Gathered())
assert np.allclose([*run.model.coef_, run.model.intercept_], [1, 2, 3, 4, 5])
assert cn.Run.load(run.save("run")).solver == Gathered()
parties[0].policy = cn.Policy(level="open", solvers=["gathered"])
cn.Federation(parties).fit(cn.Regression(), sampler=cn.AllRows(), solver=Gathered())
with pytest.raises(cn.PolicyRefusedError, match="allows the solvers gathered, not 'central'"):
    cn.Federation(parties).fit(cn.Regression(), sampler=cn.AllRows(), solver=cn.Central())
try_laws("test_solvers.py", "Gathered", "Regression")
