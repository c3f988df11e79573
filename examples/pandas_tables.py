"""Start from pandas tables: align the rows, encode categories, fit, and go on in scikit-learn.

Needs pandas. Each organisation does the first steps in its own house; all they agree on beforehand is the list of
customers that both know.
"""

import numpy as np
import pandas as pd

import colonnade as cn


def main() -> None:
    """Prepare two tables, learn, and read the model as a table."""
    rng = np.random.default_rng(0)
    numbers = rng.permutation(4_000)
    bank = pd.DataFrame({"customer": numbers[:3_500], "income": rng.lognormal(7.8, 0.5, 3_500)})
    shop = pd.DataFrame({"customer": np.sort(numbers)[:3_800], "region": rng.choice(["north", "south", "west"], 3_800)})
    shop["visits"] = rng.poisson(6, 3_800)

    common = sorted(set(bank["customer"]) & set(shop["customer"]))
    bank = bank.set_index("customer").loc[common].reset_index()
    shop = shop.set_index("customer").loc[common].reset_index()
    bank["spending"] = 0.3 * bank["income"] + 40 * shop["visits"] + 200 * (shop["region"] == "south")
    bank["spending"] += rng.normal(0, 100, len(bank))
    shop = pd.get_dummies(shop, columns=["region"], drop_first=True)

    federation = cn.Federation(
        [cn.Party("bank", bank, label="spending", key="customer"), cn.Party("shop", shop, key="customer")]
    )
    print(federation)
    model = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=400), seed=0).model
    print(pd.Series(model.coef_, index=list(model.feature_names_in_)).round(2).to_string())

    together = pd.concat([bank[["income"]], shop.drop(columns="customer")], axis=1)
    print("scikit-learn predicts the same:", np.allclose(model.to_sklearn().predict(together), model.predict(together)))


if __name__ == "__main__":
    main()
