"""Appendix A.1: Table 1 again with five parties."""

from colonnade.paper.design import TWIN_REMARK, YEAR, Experiment, Part
from colonnade.tasks import KMeans, Regression

WIDTHS = (18, 18, 18, 18, 18)

EXPERIMENT = Experiment(
    "parties",
    (
        Part("ridge", Regression(l2=0.1), YEAR, WIDTHS, ("Central", "SAGA"), cost="test"),
        Part("k-means", KMeans(n_clusters=10), YEAR, WIDTHS, ("Kmeans++", "DistDim")),
    ),
    remarks=(TWIN_REMARK,),
)
