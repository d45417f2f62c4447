"""A second server whose surfaces have tight bounds, so that tests need not wait for the usual."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from mira.ids import SystemIds
from tests.conftest import Place, Server, clone_of, url_of
from tests.services import TestServices
from tests.support.processes import DoubleProcess, Residents, ServerProcess

#: What the strict server allows (see mira.web.services.Limits). In seconds.
STRICT = {
    "auth_within": 0.3,
    "send_within": 1.0,
    "sse_heartbeat": 0.2,
    "connections_per_user": 3,
    "frames_rate": 0.001,
    "frames_burst": 20.0,
    "requests_rate": 0.001,
    "requests_burst": 40.0,
}


@pytest.fixture(scope="session")
def strict_process(
    services: TestServices, template: str, double: DoubleProcess
) -> Iterator[tuple[ServerProcess, Place]]:
    """One strict server for all tests."""
    place = clone_of(services, template)
    process = ServerProcess(url_of(place.owner), services.valkey.url, double)
    process.extra["MIRA_TEST_LIMITS"] = json.dumps(STRICT)
    process.start()
    yield process, place
    process.stop()
    process.close()


@pytest.fixture
def strict(strict_process: tuple[ServerProcess, Place]) -> Server:
    """The strict server, with a user of the test's own, and a double that echoes."""
    process, place = strict_process
    process.double.reset()
    residents = Residents(place.app, place.engine)
    person = residents.add(f"u{SystemIds().new().hex[-12:]}")
    return Server(process, person, residents, place)
