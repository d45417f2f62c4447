"""`mira dead-letters`: durable work that was given up."""

from __future__ import annotations

import sys
from typing import Annotated, TypeAlias

from cyclopts import App, Parameter
from cyclopts.validators import Number

from mira.cli.asking import ask
from mira.cli.house import House, open_house
from mira.cli.output import Json, local_time, print_json, print_table, printable
from mira.errors import NotFound
from mira.settings import Settings
from mira.web.models import Letter, LetterPage

app = App(
    name="dead-letters",
    help="Look at work that was given up after failing too often, and try it again.",
    help_format="plaintext",
)

Id: TypeAlias = Annotated[int, Parameter(validator=Number(gte=1))]


@app.command(name="list")
def list_letters(
    *,
    limit: Annotated[int, Parameter(validator=Number(gte=1))] = 50,
    every: bool = False,
    json: Json = False,
) -> int:
    """List dead letters, newest first.

    Parameters
    ----------
    limit
        How many to look at.
    every
        Those that were tried again too.
    """

    async def listed(settings: Settings) -> tuple[Letter, ...]:
        async with open_house(settings) as house:
            return await house.letters(limit)

    letters = tuple(one for one in ask(listed) if every or one.replayed_at is None)
    if json:
        print_json(LetterPage(dead_letters=letters, next_cursor=None))
        return 0
    print_table(
        ("ID", "GIVEN UP", "WHAT", "LANE", "ATTEMPTS", "ERROR", "REPLAYED"),
        (
            (
                str(one.id),
                local_time(one.buried_at),
                f"{one.kind}/{one.address}",
                one.lane,
                str(one.attempts),
                one.error,
                local_time(one.replayed_at),
            )
            for one in letters
        ),
    )
    return 0


@app.command
def show(letter: Id, *, json: Json = False) -> int:
    """Show one dead letter, with its payload: ids, never words.

    Parameters
    ----------
    letter
        Its number, as in the list.
    """

    async def found(settings: Settings) -> Letter:
        async with open_house(settings) as house:
            return await _find(house, letter)

    one = ask(found)
    if json:
        print_json(one)
        return 0
    for name in one.__struct_fields__:
        value = getattr(one, name)
        print(f"{name:<12} {'-' if value is None else printable(str(value))}")
    return 0


@app.command
def replay(letter: Id, *, json: Json = False) -> int:
    """Put one dead letter back to work; one that was put back before stays as it is.

    Parameters
    ----------
    letter
        Its number, as in the list.
    """

    async def again(settings: Settings) -> Letter:
        async with open_house(settings) as house:
            return await house.replay(letter)

    one = ask(again)
    if json:
        print_json(one)
    else:
        print(f"Dead letter {one.id} was put back to work {local_time(one.replayed_at)}.")
    return 0


async def _find(house: House, wanted: int) -> Letter:
    for one in await house.letters(sys.maxsize):
        if one.id == wanted:
            return one
    raise NotFound(f"There is no dead letter {wanted}. See: mira dead-letters list")
