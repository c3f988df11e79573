"""Match the records of three companies by key, learn on those that all have, and give predictions back by key.

Each company has customers that the others lack, in an order of its own. With "curve" nobody is shown a key.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import csv

import colonnade as cn

FOLDER = Path(__file__).parent / "bank"


def own_table(name: str, rng: np.random.Generator) -> pa.Table:
    """Read a company's customers: nine in ten of them, in an order of its own, the shop's in capitals with a blank."""
    table = csv.read_csv(FOLDER / f"{name}.csv")
    table = table.take(rng.permutation(table.num_rows)[: table.num_rows * 9 // 10])
    if name != "shop":
        return table
    return table.set_column(0, "customer", pa.array([f" {key}".upper() for key in table["customer"].to_pylist()]))


def main() -> None:
    """Align, fit, and deliver."""
    rng = np.random.default_rng(0)
    federation = cn.Federation(
        [
            cn.Party("bank", own_table("bank", rng), label="card_spending", key="customer"),
            cn.Party("telephone", own_table("telephone", rng), key="customer"),
            cn.Party("shop", own_table("shop", rng), key="customer"),
        ],
        align="curve",
    )
    print(federation.alignment)
    run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=200), seed=0)
    federation.deliver(run.model, "shop")
    delivered = federation.received("shop")
    if delivered is not None:
        print("The shop's customers who will spend most, which the shop alone learns:")
        keys = delivered.keys["customer"].to_pylist()
        for row in np.argsort(-delivered.predictions)[:3]:
            print(f"  {keys[row].strip()}: {delivered.predictions[row]:,.0f}")


if __name__ == "__main__":
    main()
