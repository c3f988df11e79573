"""Models that a party applies so that another party learns what comes of them: equations about every row, counted."""

from dataclasses import replace

from colonnade.errors import PolicyRefusedError
from colonnade.protocol.memory import AppliedNote
from colonnade.protocol.session import PartyData, PartyState


def count_applied(state: PartyState, data: PartyData, known_by: bytes, n_models: int = 1) -> PartyState:
    """Count models, known by a digest, for all time; the same again counts once."""
    note = AppliedNote(data.of_prepared(known_by), n_models)
    most = data.policy.models_of(len(data.table.feature_names))
    applied = {note, *(each for each in data.memory.notes() if isinstance(each, AppliedNote))}
    if most is not None and (told := sum(each.numbers for each in applied)) > most:
        raise PolicyRefusedError(
            f"its owner's policy applies {most:,} models in all for others to learn what comes of them, of which each "
            f"centre of a clustering is one; with this it would be {told:,}. Apply a model that it has applied "
            "before, or ask its owner.",
            party=data.name,
        )
    return replace(state, notes=(*state.notes, note))
