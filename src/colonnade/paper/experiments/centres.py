"""Appendix A.3: five centres instead of ten."""

from colonnade.paper.design import TWIN_REMARK, YEAR, Experiment, Part
from colonnade.tasks import KMeans

EXPERIMENT = Experiment(
    "centres",
    (Part("k-means", KMeans(n_clusters=5), YEAR, (30, 30, 30), ("Kmeans++", "DistDim")),),
    remarks=(TWIN_REMARK,),
)
