"""Plan a fit within a budget of bytes, carry it out, and have the result certified.

A pilot of a few hundred rows finds the sampler, the size and the solver that are best for the budget. The certificate
says what the model costs on all rows, from rows that it has not seen.
"""

import numpy as np

import colonnade as cn

BUDGET = 30_000


def main() -> None:
    """Plan, fit, certify; then look, which only a rehearsal can."""
    rng = np.random.default_rng(0)
    X = rng.lognormal(sigma=0.7, size=(20_000, 9))
    y = X @ np.arange(1.0, 10.0) + 5 * rng.normal(size=20_000)
    federation = cn.Federation(cn.split_columns(X, y, [3, 3, 3]))

    plan = federation.plan(cn.Regression(), budget_bytes=BUDGET)
    print(f"Planned for {BUDGET:,} bytes: {plan.sampler}, {plan.solver}")
    print(f"  {plan.bytes:,} bytes, {plan.pilot_bytes:,} of them the pilot's; excess {plan.excess}")

    run = federation.fit(cn.Regression(), plan=plan, seed=1)
    print(f"Sent: {run.ledger.bytes:,} bytes")
    print(f"Certified: {federation.certify(run)}")

    best = federation.fit(cn.Regression(), sampler=cn.AllRows())
    excess = federation.evaluate(run.model).cost / federation.evaluate(best.model).cost - 1
    print(f"In truth, {excess:.2%} above a model of all rows, which sends {best.ledger.bytes:,} bytes")


if __name__ == "__main__":
    main()
