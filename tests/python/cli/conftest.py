"""A folder of models, policies, learners and records, good and bad, for tests of the command line."""

import pytest

from cli import harness


@pytest.fixture(scope="session")
def filled(tmp_path_factory):
    made = tmp_path_factory.mktemp("filled")
    harness.fill(made)
    return made


@pytest.fixture
def folder(filled, tmp_path, monkeypatch):
    """A copy of the files, in which the test runs."""
    monkeypatch.chdir(harness.copied(filled, tmp_path))
    return tmp_path
