"""What every run sends beside its work: the job sheet that opens it, and the parts of a model that end it."""

from collections.abc import Mapping
from typing import assert_never

import msgspec
import numpy as np

from colonnade.contracts import PartyCard, Roster
from colonnade.evaluation.telling import ModelKept, TellModel
from colonnade.job_sheets import sheet_of
from colonnade.messages import sendable_floats
from colonnade.protocol.codec import wire_bytes
from colonnade.protocol.fingerprints import FINGERPRINT_BYTES
from colonnade.protocol.sheet import ACCEPTANCE_BYTES, JobAccepted, OpenJob
from colonnade.signing import SIGNATURE_BYTES
from colonnade.tasks import Classification, KMeans, PaperTask, Regression

A_SIGNATURE, A_DIGEST = bytes(SIGNATURE_BYTES), bytes(32)
AN_ACCEPTANCE = bytes(ACCEPTANCE_BYTES)
A_FINGERPRINT = bytes(FINGERPRINT_BYTES)


def opening_bytes(verb: str, what: Mapping[str, object], roster: Roster) -> int:
    """Give the bytes of the sheet of a job and of its acceptance, for one party: all get the same."""
    sheet = msgspec.msgpack.encode(sheet_of(verb, what, roster, None))
    return len(wire_bytes(OpenJob(sheet, A_SIGNATURE))) + len(wire_bytes(JobAccepted(AN_ACCEPTANCE, A_FINGERPRINT)))


def telling_bytes(task: PaperTask, card: PartyCard) -> int:
    """Give the bytes that tell one party its part of the model, and of its reply."""
    return len(wire_bytes(_told_model(task, card))) + len(wire_bytes(ModelKept(A_DIGEST)))


def _told_model(task: PaperTask, card: PartyCard) -> TellModel:
    of_one = sendable_floats(np.zeros(card.n_features))
    match task:
        case Regression() | Classification():
            return TellModel(of_one, None, None)
        case KMeans():
            centers = sendable_floats(np.zeros((task.n_clusters, card.n_features)))
            return TellModel(None, centers, of_one if task.standardize else None)
        case _:
            assert_never(task)
