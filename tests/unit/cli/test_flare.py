import pytest


def test_jobs_that_name_the_former_place_of_flares_classes_find_them() -> None:
    pytest.importorskip("nvflare", reason="NVIDIA FLARE is not here: pip install 'colonnade[flare]'")
    from colonnade import flare_job
    from colonnade.cli import flare

    assert (flare.JobServer, flare.SiteParty) == (flare_job.JobServer, flare_job.SiteParty)
