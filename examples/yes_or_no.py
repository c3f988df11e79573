"""A yes/no label: learn it on a coreset, look at rows held out, and read coefficients with their standard errors."""

import numpy as np

import colonnade as cn

rng = np.random.default_rng(0)
income, calls, visits = rng.normal(2, 0.5, 8000), rng.poisson(3, 8000), rng.poisson(2, 8000)
stays = np.where(1.5 * income - 0.4 * calls + 0.2 * visits + rng.logistic(size=8000) > 1, "yes", "no")

parties = [
    cn.Party("bank", income[:, np.newaxis], label=stays),
    cn.Party("telephone", calls[:, np.newaxis]),
    cn.Party("shop", visits[:, np.newaxis]),
]
federation, split = cn.Federation(parties), cn.HoldOut(0.25)
run = federation.fit(cn.Classification(), sampler=cn.ImportanceSampling(size=1000), split=split)

report = federation.evaluate(run.model, split=split)
print(f"{report.n_evaluated:,} customers held out: {report.in_words()}")
for line in run.summary().coefficients:
    print(f"{line.feature:12} {line.coefficient:6.2f} +- {line.standard_error:.2f}, p {line.p_value:.4f}")
print(federation.predict(run.model, rows=[0, 1, 2]).classes)
