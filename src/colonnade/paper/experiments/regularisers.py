"""Appendix A.2: other penalties, judged by the training objective."""

from colonnade.paper.design import TWIN_REMARK, YEAR, Experiment, Part
from colonnade.tasks import Regression

WIDTHS = (30, 30, 30)

EXPERIMENT = Experiment(
    "regularisers",
    (
        Part("plain", Regression(), YEAR, WIDTHS, ("Central", "SAGA")),
        Part("lasso", Regression(l1=2.0), YEAR, WIDTHS, ("Central",)),
        Part("elastic net", Regression(l1=2.0, l2=1.0), YEAR, WIDTHS, ("Central",)),
    ),
    remarks=(TWIN_REMARK,),
)
