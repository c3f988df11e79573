"""Fit a regression in which nobody sees another party's rows.

With SecureGram the server learns sums over the coreset's rows, the weighted Gram matrix, and no row; with
`scores="secure"` no party's scores either. The model is that of Central, which shows the server raw rows.
"""

from pathlib import Path

import colonnade as cn

FOLDER = Path(__file__).parent / "bank"


def main() -> None:
    """Learn twice on the same rows, once without showing them."""
    federation = cn.Federation(
        [
            cn.Party("bank", FOLDER / "bank.csv", label="card_spending", key="customer"),
            cn.Party("telephone", FOLDER / "telephone.csv", key="customer"),
            cn.Party("shop", FOLDER / "shop.csv", key="customer"),
        ]
    )
    plain, secure = cn.ImportanceSampling(size=200), cn.ImportanceSampling(size=200, scores="secure")
    shown = federation.fit(cn.Regression(), sampler=plain, solver=cn.Central(), seed=0)
    hidden = federation.fit(cn.Regression(), sampler=secure, solver=cn.SecureGram(), seed=0)

    print(f"Central, {shown.ledger.bytes:,} bytes. {shown.disclosure.headline}")
    print(f"SecureGram, {hidden.ledger.bytes:,} bytes. {hidden.disclosure.headline}")
    print()
    print(f"{'':<18}{'Central':>10}{'SecureGram':>12}")
    for name, a, b in zip(shown.model.feature_names_in_, shown.model.coef_, hidden.model.coef_, strict=True):
        print(f"{name:<18}{a:>10.4f}{b:>12.4f}")
    print()
    print(f"The shop told the server its {', '.join(hidden.ledger.disclosures()['shop', 'server'])}.")


if __name__ == "__main__":
    main()
