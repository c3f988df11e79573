"""What a party's log says of a request and of a reply: kinds, counts and digests, never a value."""

from colonnade.messages import Message
from colonnade.protocol.policy import amounts
from colonnade.protocol.sheet import OpenJob
from colonnade.signing import digest


def sheet_words(request: Message) -> dict[str, object]:
    """Say what a run is for, as its sheet does."""
    if not isinstance(request, OpenJob):
        return {"verb": "hello"}
    sheet = request.read()
    kinds = {"task": sheet.task, "sampler": sheet.sampler, "solver": sheet.solver}
    words = {name: None if each is None else each.get("kind") for name, each in kinds.items()}
    parties, size = [each.name for each in sheet.parties], sheet.size or sheet.size_of_coreset()
    return {"verb": sheet.verb, **words, "size": size, "parties": parties, "sheet": digest(request.sheet).hex()}


def reply_words(request: Message, reply: Message, encoded: bytes) -> dict[str, object]:
    """Say what was asked, what kind of reply left, and what it tells of how many rows."""
    return {
        "request": request.kind,
        "reply": reply.kind,
        "reveals": [str(kind) for kind in reply.reveals()],
        **amounts(request, reply),
        "units": reply.units(),
        "bytes": len(encoded),
        **_evidence(reply, encoded),
    }


def _evidence(reply: Message, encoded: bytes) -> dict[str, str]:
    """Keep digests of what the party signed, such as a committed draw, and of its signature: they tell no value."""
    signature = getattr(reply, "signature", None)
    return {} if signature is None else {"signed": digest(encoded).hex(), "signature_digest": digest(signature).hex()}
