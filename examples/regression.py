"""Fit a regression on a coreset, and try it on rows that were held out.

A bank, a telephone company and a shop know the same 800 customers. What a customer spends is learned on 200 of 600
rows; 200 others, held out, tell how good the model is.
"""

from pathlib import Path

import colonnade as cn

FOLDER = Path(__file__).parent / "bank"


def main() -> None:
    """Learn, and compare with a model of all rows."""
    federation = cn.Federation(
        [
            cn.Party("bank", FOLDER / "bank.csv", label="card_spending", key="customer"),
            cn.Party("telephone", FOLDER / "telephone.csv", key="customer"),
            cn.Party("shop", FOLDER / "shop.csv", key="customer"),
        ]
    )
    split = cn.HoldOut(0.25)
    run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=200), split=split, seed=0)
    whole = federation.fit(cn.Regression(), sampler=cn.AllRows(), split=split)

    for name, coefficient in zip(run.model.feature_names_in_, run.model.coef_, strict=True):
        print(f"{name:<16}{coefficient:7.2f}")
    for each in (run, whole):
        report = federation.evaluate(each.model, split=split)
        print(f"learned on {len(each.coreset)} rows, {each.ledger.bytes:,} bytes sent: ", end="")
        print(f"off by {report.cost_per_row**0.5:.0f} (root mean square) on {report.n_evaluated} rows held out")


if __name__ == "__main__":
    main()
