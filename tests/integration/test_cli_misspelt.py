"""Settings whose names are misspelt are told of when the server starts."""

from __future__ import annotations

from pathlib import Path

from tests.support.command import mira


def test_a_misspelt_setting_is_warned_of_with_the_nearest_one_and_never_its_value(
    tmp_path: Path,
) -> None:
    # The start is refused, so that nothing has to be waited for.
    environment = {
        "MIRA_HOME": str(tmp_path),
        "MIRA_PORT": "many",
        "MIRA_DATABSE_URL": "postgres://u:hidden@nowhere/db",
        "mira_timezon": "Europe/Vienna",
        "MIRA_QQQQQQQQ": "1",
    }
    done = mira(environment, "serve")
    assert done.code == 2
    assert (
        "no setting MIRA_DATABSE_URL; it has no effect. Did you mean MIRA_DATABASE_URL?" in done.err
    )
    assert "no setting mira_timezon; it has no effect. Did you mean MIRA_TIMEZONE?" in done.err
    assert "no setting MIRA_QQQQQQQQ; it has no effect.\n" in done.err
    assert "hidden" not in done.out + done.err


def test_settings_that_exist_are_not_warned_of(tmp_path: Path) -> None:
    environment = {"MIRA_HOME": str(tmp_path), "MIRA_PORT": "many", "MIRA_ANTHROPIC_API_KEY": "k"}
    done = mira(environment, "serve")
    assert (done.code, "no setting" in done.err) == (2, False)
