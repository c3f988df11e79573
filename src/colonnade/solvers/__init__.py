"""Solvers: how a model is learned on a coreset. One idea a file; the registry is at the end of this one."""

from colonnade.solvers import central
from colonnade.solvers.central import Central

AnySolver = Central
HANDLERS = central.HANDLERS

__all__ = ["HANDLERS", "AnySolver", "Central"]
