"""Evaluation: what a model says of rows whose columns stay with the parties. One idea a file; the registry is here."""

from colonnade.evaluation import clustering, delivery, linear

HANDLERS = (*linear.HANDLERS, *clustering.HANDLERS, *delivery.HANDLERS)

__all__ = ["HANDLERS"]
