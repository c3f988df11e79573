"""Start from pandas tables as they are: align the rows, prepare categories and gaps, fit, and go on in scikit-learn.

Needs pandas. Each organisation says how its own columns enter; its levels, and what fills a gap, stay with it.
"""

import numpy as np
import pandas as pd

import colonnade as cn


def main() -> None:
    """Prepare two tables, learn, and read the model as a table."""
    rng = np.random.default_rng(0)
    shop = pd.DataFrame({"customer": np.arange(3_800), "region": rng.choice(["north", "south", "west"], 3_800)})
    shop["visits"] = rng.poisson(6, 3_800)
    bank = pd.DataFrame({"customer": rng.permutation(4_000)[:3_500], "income": rng.lognormal(7.8, 0.5, 3_500)})
    theirs = shop.set_index("customer").reindex(bank["customer"]).reset_index()
    bank["spending"] = 0.3 * bank["income"] + 40 * theirs["visits"].fillna(6) + 200 * (theirs["region"] == "south")
    bank["spending"] += rng.normal(0, 100, len(bank))
    bank.loc[::50, "income"] = np.nan

    parties = [
        cn.Party(
            "bank", bank, label="spending", key="customer", prepare=cn.Prepare({"income": cn.Number(missing="median")})
        ),
        cn.Party("shop", shop, key="customer", prepare=cn.Prepare({"visits": cn.Number(), "region": cn.Category()})),
    ]
    federation = cn.Federation(parties, align="curve")
    print(federation)
    model = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=400), seed=0).model
    print(pd.Series(model.coef_, index=list(model.feature_names_in_)).round(2).to_string())

    pipeline = model.to_sklearn()
    print("In scikit-learn, with the preparation:", ", ".join(pipeline[:-1].get_feature_names_out()))
    print("The first three customers of both:", pipeline.predict(bank.merge(shop, on="customer")[:3]).round())


if __name__ == "__main__":
    main()
