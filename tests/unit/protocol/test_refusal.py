"""A refusal says what is wrong, and nothing of the machine it comes from."""

import pytest

from colonnade.errors import InputError
from colonnade.protocol.refusal import refused, without_paths

# As errors write them: in other quotes than those in the name, or with those masked.
WARD, QUOTED = "/wards/O'Brien, J/x.parquet", '/wards/O\'Brien "J" /x.parquet'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[Errno 2] No such file: '/home/ann b/data.csv'", "[Errno 2] No such file: '<path>'"),
        ("Cannot save to /srv/runs/a.json: full.", "Cannot save to <path>: full."),
        ('see "~/keys/x y", or (C:\\Users\\ann\\keys)', 'see "<path>", or (<path>)'),
        (f"{WARD!r} has another size", '"<path>" has another size'),
        (f"{QUOTED!r} has another size", "'<path>' has another size"),
        ("state/run.json is damaged", "<path> is damaged"),
        ("party 'bank' has 1/2 of n / m rows", "party 'bank' has 1/2 of n / m rows"),
    ],
)
def test_paths_stay_at_home(text: str, told: str) -> None:
    assert without_paths(text) == told
    assert refused(InputError(text)).reason == told
