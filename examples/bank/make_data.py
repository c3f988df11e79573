"""Write the example's three files: invented customers of a bank, a telephone company and a shop.

Run from the project's root: .venv/bin/python examples/bank/make_data.py
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

FOLDER = Path(__file__).parent
N_CUSTOMERS = 800


def main() -> None:
    """Draw the customers and write one file a company."""
    rng = np.random.default_rng(20221128)
    income = np.round(rng.lognormal(7.8, 0.5, N_CUSTOMERS), 2)
    age = rng.integers(18, 80, N_CUSTOMERS)
    roaming = np.round(rng.pareto(2.5, N_CUSTOMERS) * 20, 1)  # a few travel a great deal
    minutes = np.round(rng.gamma(3, 100, N_CUSTOMERS), 1)
    purchases = rng.poisson(6, N_CUSTOMERS)
    basket = np.round(rng.lognormal(3.5, 0.6, N_CUSTOMERS), 2)
    spending = 0.35 * income + 4 * age + 3.5 * roaming + 0.1 * minutes + 1.2 * purchases * basket
    spending = np.round(spending + rng.normal(0, 150, N_CUSTOMERS), 2)

    customer = [f"c{number:05d}" for number in rng.permutation(100_000)[:N_CUSTOMERS]]
    write("bank.csv", customer=customer, income=income, age=age, card_spending=spending)
    write("telephone.csv", customer=customer, minutes=minutes, roaming_minutes=roaming)
    write("shop.csv", customer=customer, purchases=purchases, basket=basket)


def write(name: str, **columns: object) -> None:
    """Write columns to a CSV file."""
    csv.write_csv(pa.table(columns), FOLDER / name)


if __name__ == "__main__":
    main()
