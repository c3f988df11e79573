"""What was found out of a run's model after it was learned; kept as JSON beside the run."""

from typing import Any

import msgspec

from colonnade.contracts import Report
from colonnade.diagnostics.certificate import Certificate
from colonnade.errors import InputError


class Findings(msgspec.Struct, frozen=True):
    """How good a run's model is, as far as somebody has looked.

    Parameters
    ----------
    evaluation : RegressionReport, ClassificationReport, ClusteringReport or None
        How it does on the rows that the run held out; on all rows where it held out none.
    all_rows : RegressionReport, ClassificationReport, ClusteringReport or None
        How a model learned from all rows does, on the same rows.
    certificate : Certificate or None
        What an audit says of the run.

    Examples
    --------
    >>> import numpy as np, colonnade as cn
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> federation = cn.Federation(cn.split_columns(X, X @ [1.0, 2.0, 3.0] + X[:, 0] ** 2, [1, 2]))
    >>> run = federation.fit(cn.Regression(), sampler=cn.ImportanceSampling(size=100))
    >>> best = federation.fit(cn.Regression(), sampler=cn.AllRows())
    >>> run = run.with_findings(federation.evaluate(run.model), all_rows=federation.evaluate(best.model))
    >>> 0 < run.findings.excess < 0.2
    True
    """

    evaluation: Any = None
    all_rows: Any = None
    certificate: Certificate | None = None

    @property
    def excess(self) -> float | None:
        """By what part of the cost of a model of all rows this model's is above it; None where that is not known."""
        if self.evaluation is None or self.all_rows is None or self.all_rows.cost <= 0:
            return None
        if not _is_of_same_rows(self.evaluation, self.all_rows):
            return None
        return float(self.evaluation.cost / self.all_rows.cost - 1)

    def joined(self, newer: "Findings") -> "Findings":
        """Put newer findings in the place of these, where there are some; what is of other rows goes."""
        found = {name: value for name in self.__struct_fields__ if (value := getattr(newer, name)) is not None}
        joined = msgspec.structs.replace(self, **found)
        if newer.all_rows is None and self.all_rows is not None and newer.evaluation is not None:
            stays = _is_of_same_rows(newer.evaluation, self.all_rows)
            return joined if stays else msgspec.structs.replace(joined, all_rows=None)
        return joined

    def check(self, report: type[Report]) -> None:
        """Require reports of the kind that belongs to the run's model."""
        for name in ("evaluation", "all_rows"):
            found = getattr(self, name)
            if found is not None and not isinstance(found, report):
                raise InputError(
                    f"`{name}` is a {type(found).__name__}, and this run's model is judged by a {report.__name__}. "
                    "Pass what Federation.evaluate gives for it."
                )
        if self.certificate is not None and not isinstance(self.certificate, Certificate):
            raise InputError(
                f"`certificate` is a {type(self.certificate).__name__}. Pass what Federation.certify gives for the run."
            )

    @classmethod
    def restored(cls, written: dict[str, Any], report: type[Report]) -> "Findings":
        """Read what was written, without trust, with reports of this kind."""
        found: dict[str, Any] = {
            name: msgspec.convert(value, Certificate if name == "certificate" else report)
            for name, value in written.items()
            if value is not None
        }
        return cls(**{name: found.get(name) for name in cls.__struct_fields__})


def _is_of_same_rows(one: Any, other: Any) -> bool:
    """Tell whether two reports can be compared, as far as they say."""
    samples = [getattr(each, "cost_interval", None) is not None for each in (one, other)]
    return bool(one.n_evaluated == other.n_evaluated) and not any(samples)


NOTHING_FOUND = Findings()
