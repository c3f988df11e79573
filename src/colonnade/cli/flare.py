"""Where FLARE's classes were before `colonnade.flare_job`: jobs and allow lists that owners wrote name them here."""

from colonnade.flare_job import JobServer as JobServer
from colonnade.flare_job import SiteParty as SiteParty
