"""The paper's experiments, one declaration a file; the registry is here."""

from colonnade.paper.experiments import centres, kc_house, parties, regularisers, table1_clustering, table1_regression

EXPERIMENTS = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (table1_regression, table1_clustering, parties, regularisers, centres, kc_house)
}

__all__ = ["EXPERIMENTS"]
