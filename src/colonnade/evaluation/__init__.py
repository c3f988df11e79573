"""Evaluation: what a model says of rows whose columns stay with the parties. The registry of handlers is here.

`linear` and `clustering` add up the parties' parts of predictions and of distances, `rounding` lets them travel with
few bits, `delivery` hands predictions on to a party. In `masked`, one party learns what comes of it and the server does
not. `classes` does all of this for chances of classes. `reports` says it in words. `telling` lets a party know a model
again, and `applying` says what it is asked where one is applied.
"""

from colonnade.evaluation import classes, clustering, delivery, linear, masked, telling

HANDLERS = (
    *linear.HANDLERS,
    *clustering.HANDLERS,
    *classes.HANDLERS,
    *delivery.HANDLERS,
    *masked.HANDLERS,
    *telling.HANDLERS,
)

__all__ = ["HANDLERS"]
