"""Read what a job would tell to whom before it is done, and refuse what is too much.

The sheet of a job that is not done yet is rehearsed by stand-ins: nothing is asked of the parties. An owner then sets a
policy, which the party applies itself, whoever asks.
"""

import warnings
from pathlib import Path

import colonnade as cn

FOLDER = Path(__file__).parent / "bank"


def parties(policy: cn.Policy) -> list[cn.Party]:
    """Make the three parties; the policy is the shop's."""
    return [
        cn.Party("bank", FOLDER / "bank.csv", label="card_spending", key="customer"),
        cn.Party("telephone", FOLDER / "telephone.csv", key="customer"),
        cn.Party("shop", FOLDER / "shop.csv", key="customer", policy=policy),
    ]


def main() -> None:
    """Print the sheet, run into the shop's policy, and do without what it refuses."""
    plain, secure = cn.ImportanceSampling(size=200), cn.ImportanceSampling(size=200, scores="secure")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cn.DisclosureWarning)  # the sheet says the same, in more words
        federation = cn.Federation(parties(cn.Policy()))
        print(federation.disclosure(cn.Regression(), sampler=plain, solver=cn.Central()))

    careful = cn.Federation(parties(cn.Policy(never=["features", "scores"])))
    try:
        careful.fit(cn.Regression(), sampler=plain)
    except cn.PolicyRefusedError as refusal:
        print(f"\nThe shop sets a policy, and the same job stops:\n{refusal}")
    run = careful.fit(cn.Regression(), sampler=secure, solver=cn.SecureGram(), seed=0)
    print(f"\nWith secure scores and SecureGram the shop takes part:\n{run.disclosure.headline}")


if __name__ == "__main__":
    main()
