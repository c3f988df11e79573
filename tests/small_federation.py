"""A bank and a shop with sixty rows, connected over the network; and who dials in with whatever certificate."""

from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest

import colonnade as cn
from colonnade.node.files import read_federation_file
from colonnade.transports.endpoints import Tls
from colonnade.transports.envelopes import ENVELOPE_VERSION, Join, encode
from colonnade.transports.grpc import wire

PARTIES = ("bank", "shop")


def make_parties() -> list[cn.Party]:
    rng = np.random.default_rng(0)
    return [
        cn.Party("bank", rng.normal(size=(60, 2)), label=rng.normal(size=60)),
        cn.Party("shop", rng.normal(size=(60, 2))),
    ]


def check_unharmed(federation: cn.Federation) -> None:
    """Run a job: it gives what it gives in one process."""
    job = {"sampler": cn.ImportanceSampling(size=20), "seed": 4}
    here = cn.Federation(make_parties()).fit(cn.Regression(), **job)  # type: ignore[arg-type]
    found = federation.fit(cn.Regression(), **job)  # type: ignore[arg-type]
    assert found.model.coef_.tobytes() == here.model.coef_.tobytes()


def dial(folder: Path, credentials: Tls, *claim: tuple[str, str]) -> tuple[Any, str]:
    """Join with any certificate, and tell how it ended."""
    address = read_federation_file(folder / "federation.toml").listen
    options: list[tuple[str, Any]] = [*wire.options(5.0), ("grpc.ssl_target_name_override", "server")]
    with grpc.secure_channel(address, wire.dialling_credentials(credentials), options) as channel:
        call = channel.stream_stream(f"/{wire.SERVICE}/{wire.METHOD}")
        with pytest.raises(grpc.RpcError) as caught:
            list(call(encode(Join(ENVELOPE_VERSION, ())).pieces(), metadata=claim, timeout=10))
    error: Any = caught.value
    return error.code(), error.details()
