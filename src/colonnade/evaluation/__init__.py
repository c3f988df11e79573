"""Evaluation: what a model says of rows whose columns stay with the parties. One idea a file; the registry is here."""

from colonnade.evaluation import clustering, delivery, linear, masked_party

HANDLERS = (*linear.HANDLERS, *clustering.HANDLERS, *delivery.HANDLERS, *masked_party.HANDLERS)

__all__ = ["HANDLERS"]
