"""Cluster rows whose columns two parties hold.

Customers come in three kinds, which neither the bank nor the shop can tell apart alone: together they can.
"""

import numpy as np

import colonnade as cn


def main() -> None:
    """Make up customers, cluster them, and say whom the clusters hold."""
    rng = np.random.default_rng(0)
    kind = rng.integers(3, size=6_000)
    income = np.array([2_000.0, 2_000.0, 5_000.0])[kind] + rng.normal(scale=300, size=6_000)
    visits = np.array([2.0, 12.0, 2.0])[kind] + rng.normal(size=6_000)
    federation = cn.Federation([cn.Party("bank", income[:, None]), cn.Party("shop", visits[:, None])])

    task = cn.KMeans(n_clusters=3, standardize=True)  # or income, in larger units, would decide everything
    run = federation.fit(task, sampler=cn.ImportanceSampling(size=150), seed=0)
    clusters = federation.predict(run.model)

    print(f"{len(run.coreset)} rows were drawn of 6,000, and {run.ledger.bytes:,} bytes sent")
    for number, (mean_income, mean_visits) in enumerate(run.model.cluster_centers_):
        members = kind[clusters == number]
        print(
            f"cluster {number}: {len(members):,} customers with an income of {mean_income:,.0f} and {mean_visits:.0f} "
            f"visits; {np.bincount(members, minlength=3).max() / len(members):.1%} of them are of one kind"
        )


if __name__ == "__main__":
    main()
