"""Table 1, left: ridge regression with three parties."""

from colonnade.experiments.design import YEAR, Experiment, Part
from colonnade.tasks import Regression

EXPERIMENT = Experiment(
    "table1-regression",
    "Table 1, left: ridge regression, 3 parties",
    (Part("ridge", Regression(l2=0.1), YEAR, (30, 30, 30), ("Central", "SAGA"), cost="test"),),
)
