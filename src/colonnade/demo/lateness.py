"""Will a flight arrive more than 15 minutes late? A yes/no label, learned on a coreset and judged on rows held out."""

from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from colonnade.data.parties import Party
from colonnade.demo.flights import KEY, LATE, PREPARE
from colonnade.evaluation.classes.reports import ClassificationReport
from colonnade.federation import Federation
from colonnade.preparation.rules import Number
from colonnade.protocol.splits import HoldOut
from colonnade.run import Run
from colonnade.sampling import AllRows, AnySampler, ImportanceSampling
from colonnade.tasks import Classification, ClassificationModel

SIZES = (4000, 2000, 1000)
SPLIT = HoldOut(0.2)
# Little, but above none: of many levels, some are late in no drawn row.
TASK = Classification(l2=1e-5)
NUMBERS = [name for rules in PREPARE.values() for name, rule in rules.columns.items() if isinstance(rule, Number)]


def learn_lateness(files: Mapping[str, Path], seed: int) -> list[Run[ClassificationModel]]:
    """Align the parties' flights, learn on coresets of those that are not held out, and evaluate on the others.

    The largest coreset's run comes first, with a certificate; all have beside them how a model of all rows does.
    """
    parties = [
        Party(name, path, key=KEY, label=LATE if name == "airline" else None, prepare=PREPARE[name])
        for name, path in files.items()
    ]
    federation = Federation(parties, align="aided")

    def judged(sampler: AnySampler) -> Run[ClassificationModel]:
        run = federation.fit(TASK, sampler=sampler, split=SPLIT, seed=seed)
        return run.with_findings(federation.evaluate(run.model, split=SPLIT))

    best = judged(AllRows()).findings.evaluation
    first, *others = [judged(ImportanceSampling(size)).with_findings(all_rows=best) for size in SIZES]
    return [first.with_findings(certificate=federation.certify(first)), *others]


def in_words(run: Run[ClassificationModel]) -> str:
    """Say how well lateness is told, and what of the columns that are numbers."""
    report: ClassificationReport = run.findings.evaluation
    low, high = report.auc_interval or (0.0, 1.0)
    summary = run.summary()
    shown = tuple(each for each in summary.coefficients if each.party is None or each.feature in NUMBERS)
    left_out = len(summary.coefficients) - len(shown)
    return (
        f"Will it be more than 15 minutes late? Learned on {len(run.coreset):,} of {run.coreset.total_weight:,.0f} "
        f"flights, {run.ledger.bytes / 1e6:.1f} MB sent; on {report.n_evaluated:,} flights held out:\n"
        f"AUC {report.auc:.4f}, between {low:.4f} and {high:.4f} with 95 % confidence; log-loss {report.log_loss:.4f}, "
        f"accuracy {report.accuracy:.1%}.\n\n{replace(summary, coefficients=shown)}\n"
        f"Levels are left out here, {left_out} coefficients; numbers are in standard deviations."
    )
