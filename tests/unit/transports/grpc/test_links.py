"""A party's stream as the server holds it, without a network; the rest is tried with one in tests/network."""

import resource

import pytest

from colonnade.transports.envelopes import Goodbye, encode
from colonnade.transports.grpc.links import UNLIMITED, DaemonThreads, Link, most_files


def test_what_is_queued_goes_out_before_the_end() -> None:
    link, words = Link(), [encode(Goodbye("done", str(number), 0)) for number in range(3)]
    for each in words:
        link.send(each)
    link.close()
    link.send(words[0])
    assert list(link.outgoing()) == [piece for each in words for piece in each.pieces()]
    assert link.joined.is_set(), "nobody waits for who has left"


def test_the_first_refusal_is_the_one_told() -> None:
    link = Link()
    for refusal in (None, ("denied", "no party"), ("late", "timed out"), None):
        link.close(refusal)
    assert link.refusal == ("denied", "no party")


def test_an_error_in_a_thread_is_handed_to_who_waits_for_it() -> None:
    threads = DaemonThreads()
    assert threads.submit(divmod, 7, 2).result(timeout=10) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        threads.submit(divmod, 7, 0).result(timeout=10)


def test_a_process_may_open_as_many_files_as_its_owner_may_allow() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
    try:
        assert most_files() == (UNLIMITED if hard == resource.RLIM_INFINITY else hard)
        assert resource.getrlimit(resource.RLIMIT_NOFILE) == (hard, hard)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
