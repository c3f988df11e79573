"""Table 1, left: ridge regression with three parties."""

from colonnade.paper.design import TWIN_REMARK, YEAR, Experiment, Part
from colonnade.tasks import Regression

EXPERIMENT = Experiment(
    "table1-regression",
    (Part("ridge", Regression(l2=0.1), YEAR, (30, 30, 30), ("Central", "SAGA"), cost="test"),),
    remarks=(
        TWIN_REMARK,
        "The paper has no SAGA on all rows: it did not converge. It does where parties scale their own columns.",
        "As run, SAGA stops where no coefficient changes by much of the largest one, which is far from the optimum.",
    ),
)
