"""Save a model, load it, and predict through the parties on rows that are new.

Nobody collects the columns to predict: each party applies its share of the model to its own rows, and the parts are
added up. With `deliver` only the party that is to act on them learns the sums.
"""

import tempfile
from pathlib import Path

import numpy as np

import colonnade as cn


def customers(n_rows: int, seed: int) -> list[cn.Party]:
    """Make up customers of a bank, a telephone company and a shop."""
    rng = np.random.default_rng(seed)
    income, calls, baskets = (
        rng.lognormal(size=(n_rows, 2)),
        rng.gamma(2, size=(n_rows, 2)),
        rng.gamma(3, size=(n_rows, 1)),
    )
    spending = income @ [3.0, 1.0] + calls @ [0.5, 2.0] + baskets @ [1.0] + rng.normal(size=n_rows)
    return [cn.Party("bank", income, label=spending), cn.Party("telephone", calls), cn.Party("shop", baskets)]


def main() -> None:
    """Learn on last year's customers, predict this year's."""
    last_year, this_year = cn.Federation(customers(5_000, seed=0)), cn.Federation(customers(1_000, seed=1))
    run = last_year.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=300), seed=0)
    with tempfile.TemporaryDirectory() as folder:
        run.model.save(Path(folder) / "model")
        model = cn.LinearModel.load(Path(folder) / "model")
        print("Saved and loaded:", ", ".join(sorted(path.name for path in (Path(folder) / "model").iterdir())))
    for party in this_year.roster.names:
        print(f"  the share of {party}: {model.part(party).coef_.round(2)}")

    print("The first three customers of this year:", this_year.predict(model, rows=[0, 1, 2]).round(1))
    print(
        f"Predictions are off by {this_year.evaluate(model).cost_per_row ** 0.5:.2f} (root mean square); the noise is 1"
    )
    this_year.deliver(model, "shop")
    received = this_year.received("shop")
    if received is not None:
        best = received.predictions.argmax()
        print(f"The shop, and nobody else, was given all: number {best} spends most, {received.predictions[best]:.1f}")


if __name__ == "__main__":
    main()
