"""Make the raw tables of this folder: three organisations that know partly the same people, each in its own way.

`python examples/raw/make_tables.py` writes them again, the same to the byte.
"""

from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent
JOBS = ["clerk", "driver", "nurse", "teacher", "cook", "painter", "judge"]
SHARES = [0.27, 0.22, 0.18, 0.15, 0.12, 0.057, 0.003]
TARIFFS = ["basic", "family", "travel"]
N_LEARNED, N_NEW = 1_500, 120


def people(n_rows: int, first: int, rng: np.random.Generator) -> pd.DataFrame:
    """Make up people, with all that any of the three knows."""
    whole = pd.DataFrame(
        {
            "customer": np.arange(first, first + n_rows),
            "age": rng.integers(18, 85, n_rows),
            "job": rng.choice(JOBS, n_rows, p=SHARES),
            "opened": pd.Timestamp("2009-03-01") + pd.to_timedelta(rng.integers(0, 5_500, n_rows), unit="D"),
            "income": rng.lognormal(7.8, 0.45, n_rows).round(2),
            "tariff": rng.choice(TARIFFS, n_rows, p=[0.6, 0.3, 0.1]),
            "minutes": rng.gamma(3, 100, n_rows).round(),
            "visits": rng.poisson(6, n_rows),
            "basket": rng.lognormal(3.5, 0.6, n_rows).round(2),
        }
    )
    job = whole["job"].map({"nurse": 90.0, "judge": 400.0, "cook": -60.0}).fillna(0.0)
    tariff = whole["tariff"].map({"travel": 150.0, "family": 40.0}).fillna(0.0)
    regular = 0.12 * whole["income"] + job + tariff + 9.0 * whole["visits"] + 1.5 * whole["basket"]
    whole["spending"] = (regular + rng.normal(0, 80, n_rows)).round(2)
    return whole


def some(whole: pd.DataFrame, share: float, rng: np.random.Generator) -> pd.DataFrame:
    """Take so many of the people, in an order of its own."""
    return whole.sample(frac=share, random_state=rng).reset_index(drop=True)


def gaps(column: pd.Series, share: float, rng: np.random.Generator) -> pd.Series:
    """Leave out some values."""
    return column.mask(rng.random(len(column)) < share)


def write(whole: pd.DataFrame, end: str, rng: np.random.Generator) -> None:
    """Write what each of the three has of these people."""
    bank = some(whole, 0.95, rng)[["customer", "age", "job", "opened", "income"]]
    bank["age"], bank["job"] = gaps(bank["age"].astype("Int64"), 0.06, rng), gaps(bank["job"], 0.03, rng)
    if end:
        bank.loc[bank.index % 40 == 7, "job"] = "pilot"  # whom nobody has learned about
    bank["opened"] = bank["opened"].dt.strftime("%d.%m.%Y")
    bank.to_csv(HERE / f"bank{end}.csv", sep=";", decimal=",", index=False, lineterminator="\n")
    telephone = some(whole, 0.93, rng)[["customer", "tariff", "minutes"]]
    telephone["minutes"] = gaps(telephone["minutes"], 0.05, rng)
    # It keeps its customers' numbers as text, some of them typed with a blank.
    telephone["customer"] = telephone["customer"].astype(str) + np.where(rng.random(len(telephone)) < 0.1, " ", "")
    telephone.rename(columns={"customer": "client"}).to_csv(
        HERE / f"telephone{end}.csv", index=False, lineterminator="\n"
    )
    shop = some(whole, 0.96, rng)[["customer", "visits", "basket", "spending"]]
    shop = shop if not end else shop.drop(columns="spending")  # which is what is to be predicted
    shop.to_csv(HERE / f"shop{end}.csv", index=False, lineterminator="\n")


if __name__ == "__main__":
    rng = np.random.default_rng(17)
    write(people(N_LEARNED, 20_001, rng), "", rng)
    write(people(N_NEW, 40_001, rng), "-new", rng)
