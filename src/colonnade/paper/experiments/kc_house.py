"""Appendix A.4: KC House, plain regression and 5-means with two parties."""

from colonnade.paper.design import HOUSE_SIZES, HOUSES, Experiment, Part
from colonnade.tasks import KMeans, Regression

EXPERIMENT = Experiment(
    "kc-house",
    (
        Part("plain", Regression(), HOUSES, (9, 9), ("Central", "SAGA"), HOUSE_SIZES, saga_epochs=3000),
        Part("k-means", KMeans(n_clusters=5), HOUSES, (9, 9), ("Kmeans++", "DistDim"), HOUSE_SIZES),
    ),
    remarks=(
        "C-Central and U-Central differ from the stored costs, which blow up: the features are exactly collinear "
        "(sqft_above + sqft_basement = sqft_living) and the authors' solver was not rank-safe. Ours always is.",
        "The stored SAGA on all rows equals Central to the last digit after ten epochs: it is no run of SAGA.",
    ),
)
