"""Table 1, right: 10-means with three parties."""

from colonnade.paper.design import TWIN_REMARK, YEAR, Experiment, Part
from colonnade.tasks import KMeans

EXPERIMENT = Experiment(
    "table1-clustering",
    (Part("k-means", KMeans(n_clusters=10), YEAR, (30, 30, 30), ("Kmeans++", "DistDim")),),
    remarks=(TWIN_REMARK,),
)
