"""The purpose of a run: what the server tells parties on other machines when it opens one."""

from typing import Annotated, TypeAlias

import msgspec

# Words of the other end, which are written to logs.
Word: TypeAlias = Annotated[str, msgspec.Meta(max_length=64)]


class RunPurpose(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """What a run is for, in words for the parties' owners, and a digest of all that decides its result but the data.

    Two runs with one fingerprint send the same requests as long as they get the same replies.
    """

    verb: Word
    task: Word | None
    sampler: Word | None
    solver: Word | None
    fingerprint: Word
