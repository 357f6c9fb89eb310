from fleet_crawl import Listed

from sanderling.repos.directory import Entry
from sanderling.repos.skipping import Without

A, B = "https://a.example", "https://b.example"
ALL = Listed([("did:1", A), ("did:2", A), ("did:3", B), ("did:4", A)])


def test_the_did_of_a_skipped_host_is_nowhere() -> None:
    directory = Without(ALL, [A])

    assert directory.page("", 10) == [Entry("did:3", B)]
    assert directory.hosts_of(["did:1", "did:3"]) == {"did:3": B}


def test_a_page_that_would_be_empty_is_not_taken_for_the_end() -> None:
    directory = Without(ALL, [A])

    assert directory.page("", 1) == [Entry("did:3", B)]
    assert directory.page("did:3", 1) == []
