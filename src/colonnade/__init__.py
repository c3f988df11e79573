"""Colonnade: vertical federated learning on coresets.

Several organisations hold different columns of the same rows. They agree on a small weighted sample of rows, a
coreset, in three short rounds, and learn on that. Every byte and every disclosure stands on a ledger.

>>> import colonnade as cn
>>> cn.Regression(l2=0.1)
Regression(l2=0.1, l1=0.0, fit_intercept=True, standardize=False)
"""

from typing import Any

from colonnade.alignment.records import AlignmentReport
from colonnade.coreset import Coreset
from colonnade.data.dask_engine import DaskEngine
from colonnade.data.databases import Query
from colonnade.data.parties import Party, split_columns
from colonnade.diagnosing import diagnose
from colonnade.diagnostics.certificate import Certificate
from colonnade.diagnostics.records import Diagnosis
from colonnade.diagnostics.sizes import TheorySize, theory_size
from colonnade.errors import (
    AlignmentError,
    AssumptionWarning,
    ColonnadeError,
    ConvergenceWarning,
    DisclosureWarning,
    EngineError,
    InputError,
    LocalProtocolError,
    PartyUnreachableError,
    PolicyRefusedError,
    ProtocolError,
    RemoteProtocolError,
    TransportError,
    UnsupportedError,
    WireVersionError,
)
from colonnade.evaluation.classes.reports import ClassificationReport
from colonnade.evaluation.reports import ClusteringReport, RegressionReport
from colonnade.federation import Federation
from colonnade.findings import Findings
from colonnade.kernels.class_predictions import ClassPredictions
from colonnade.ledger import Ledger
from colonnade.node.party import serve_party
from colonnade.planning.records import Plan
from colonnade.preparation.rules import Category, Date, Number, Prepare
from colonnade.protocol.policy import Policy
from colonnade.protocol.splits import HoldOut, SplitBy
from colonnade.run import Run
from colonnade.sampling import AllRows, ImportanceSampling, UniformSampling
from colonnade.solvers import Central, CompactCentral, DistDim, Saga, SecureGram, SecureLloyd
from colonnade.tasks import Classification, ClassificationModel, KMeans, KMeansModel, LinearModel, Regression
from colonnade.tasks.summary import Coefficient, Summary
from colonnade.tasks.to_sklearn import skops_types

__all__ = [
    "AlignmentError",
    "AlignmentReport",
    "AllRows",
    "AssumptionWarning",
    "Category",
    "Central",
    "Certificate",
    "ClassPredictions",
    "Classification",
    "ClassificationModel",
    "ClassificationReport",
    "ClusteringReport",
    "Coefficient",
    "ColonnadeClassifier",
    "ColonnadeError",
    "ColonnadeKMeans",
    "ColonnadeRegressor",
    "CompactCentral",
    "ConvergenceWarning",
    "Coreset",
    "DaskEngine",
    "Date",
    "Diagnosis",
    "DisclosureWarning",
    "DistDim",
    "EngineError",
    "Federation",
    "Findings",
    "HoldOut",
    "ImportanceSampling",
    "InputError",
    "KMeans",
    "KMeansModel",
    "Ledger",
    "LinearModel",
    "LocalProtocolError",
    "Number",
    "Party",
    "PartyUnreachableError",
    "Plan",
    "Policy",
    "PolicyRefusedError",
    "Prepare",
    "ProtocolError",
    "Query",
    "Regression",
    "RegressionReport",
    "RemoteProtocolError",
    "Run",
    "Saga",
    "SecureGram",
    "SecureLloyd",
    "SplitBy",
    "Summary",
    "TheorySize",
    "TransportError",
    "UniformSampling",
    "UnsupportedError",
    "WireVersionError",
    "diagnose",
    "serve_party",
    "skops_types",
    "split_columns",
    "theory_size",
]


def __getattr__(name: str) -> Any:
    """Load the scikit-learn face only when it is asked for."""
    if name in ("ColonnadeClassifier", "ColonnadeKMeans", "ColonnadeRegressor"):
        from colonnade import estimators

        return getattr(estimators, name)
    raise AttributeError(f"module 'colonnade' has no attribute {name!r}")
