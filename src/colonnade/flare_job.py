"""What a FLARE job names in its configuration: the server that does the jobs of federation.toml, and a party.

No code travels with such a job: every site runs the Colonnade that its owner installed, on the data and under the
policy that its owner wrote down in its own `local` folder.
"""

from contextlib import ExitStack
from pathlib import Path

from nvflare.collab import collab

from colonnade.errors import InputError
from colonnade.node.files import FLARE, read_party_file
from colonnade.node.party import opened_desk
from colonnade.server_jobs import do_jobs, summary
from colonnade.transports.flare import FlareParty
from colonnade.transports.terminal import say

FEDERATION = "federation.toml"


class JobServer:
    """Does the jobs of the federation.toml that lies beside the configuration of the server's app."""

    @collab.main  # type: ignore[untyped-decorator]  # FLARE has no types
    def serve(self) -> None:
        """Do them one after another."""
        job = collab.fl_ctx.get_job_id()
        path = Path(collab.workspace.get_app_config_dir(job)) / FEDERATION
        for done in do_jobs(path):
            say(summary(done))


class SiteParty:
    """Answers for the site, as the file NAME.toml in its `local` folder says; NAME is what FLARE calls the site."""

    def __init__(self) -> None:
        self._party: FlareParty | None = None
        self._closing = ExitStack()

    @collab.init  # type: ignore[untyped-decorator]  # FLARE has no types
    def open(self) -> None:
        """Read the file and the data."""
        name = collab.site_name
        path = Path(collab.workspace.get_site_config_dir()) / f"{name}.toml"
        file = read_party_file(path)
        if file.server != FLARE or file.name != name:
            raise InputError(f'{path}: write name = "{name}", as FLARE calls this site, and server = "{FLARE}".')
        desk, *_ = self._closing.enter_context(opened_desk(file, say))
        self._party = FlareParty(file, desk)
        self._closing.callback(self._party.close)

    @collab.publish  # type: ignore[untyped-decorator]  # FLARE has no types
    def take(self, envelope: bytes) -> bytes:
        """Answer one envelope."""
        if self._party is None:
            raise InputError("The party is not open. Let FLARE start the job.")
        return self._party.take(envelope, collab.caller)

    @collab.final  # type: ignore[untyped-decorator]  # FLARE has no types
    def close(self) -> None:
        """Let the next job have the state folder."""
        self._closing.close()
