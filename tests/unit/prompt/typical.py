"""A typical day of a user of some months, each part of it as long as such parts usually are."""

from __future__ import annotations

from datetime import timedelta

from mira.messages.content import Role
from mira.prompt.inputs import Inputs, LinkedMemory, SurfacedPassage
from mira.prompt.turn import Turn
from tests.support.prompt import NOW, inputs, memory, row, summary, turn

TRACE = (
    "I helped Ada choose between the two flats in Neukölln and we settled on the one in "
    "Weserstraße, because the commute by bicycle is 18 minutes and the kitchen faces the yard. "
    "We went through the contract line by line on 2026-11-12, and I found that clause 14 lets "
    "the landlord raise the rent after twelve months instead of fifteen. She wrote to Mr. "
    "Brandt about it and I drafted the letter in German, polite but firm. She was tired and "
    "relieved at the end, and we left the question of the moving company open until she knows "
    "the date."
)
PRECIS = (
    "I helped Ada decide for the flat in Weserstraße and draft a letter to Mr. Brandt about "
    "clause 14 of the contract. The moving company is still open."
)
DIRECTIVES = "\n".join(
    [
        "- Give the result first and the derivation only when she asks how.",
        "- When she pastes code, answer with a patch, not with the whole file.",
        "- She wants to be told when a deadline she mentioned comes within two days.",
        "- Do not soften criticism of her drafts; name the weakest paragraph first.",
        "- In the evening she thinks aloud; a short question helps her more than a plan.",
        "- Write to her in English, but keep German terms of law and tax as they are.",
        "- Offer one option with its reason instead of a list of alternatives.",
        "- Do not ask whether there is anything else.",
    ]
)
PORTRAIT = (
    "Ada is a software engineer of thirty-eight who works four days a week for a company that "
    "builds instruments for hydrology, and on Fridays on a history of her family. She moved to "
    "Berlin from Turin nine years ago, lives with her partner Jonas and their dog, and is "
    "about to move again. She decides quickly in small things and slowly in large ones, likes "
    "to see the numbers, and dislikes being hurried. Her mother's illness takes more of her "
    "time this year than she likes to say. She sleeps badly before travelling, runs on the "
    "canal when it is not raining, and reads three books at once. She is learning to play the "
    "cello, late and with pleasure."
)
TITLES = (
    "Clause 14 and the letter to Brandt", "Debugging the gauge importer", "A dinner for six",
    "Mother's second opinion in Turin", "Which cello to rent", "Talk outline for the workshop",
)  # fmt: skip
MEMORIES = (
    "Ada's mother has an appointment with Dr. Ferrero in Turin on 2026-12-04.",
    "Ada rents a cello from the shop in Reichenberger Straße for 28 euros a month.",
    "Jonas is allergic to walnuts and carries an adrenaline pen.",
    "Ada prefers to take the night train to Turin over flying, if it is less than 180 euros.",
    "The gauge importer reads timestamps in local time and must be run before 03:00.",
    "Ada promised her brother the scans of their grandfather's letters before Christmas.",
    "Ada's landlord is called Mr. Brandt, and he answers letters but no e-mail.",
    "Ada has given notice for the flat in Kreuzberg to the end of February 2027.",
)
PASSAGE = (
    "I think we should do it the other way round: first fix the date with the movers, and only "
    "then tell Brandt when we hand over the keys, otherwise we pay for two flats in March."
)
QUESTION = (
    "Can you remind me what we said about the movers? Jonas now says the 27th might work for "
    "him, but I would have to take a day off and the workshop is that week."
)
ANSWER = (
    "You left it open until the date was fixed. Two offers are in: Zeitler for 1,150 euros "
    "including boxes, valid until 12 December, and the students' agency for about 700 without "
    "insurance. You leaned towards Zeitler because of the cello.\n\nThe 27th collides with the "
    "workshop: it runs from the 26th to the 28th, and your talk is on the second day. If Jonas "
    "can do the 20th instead, you keep the talk, the offer is still valid, and nothing "
    "overlaps. Shall I write to Zeitler for the 20th? The one doubt: their offer names "
    "weekdays only, and the 20th is a Sunday."
)


def turns(number: int) -> tuple[Turn, ...]:
    """Turns that are alike and not the same."""
    return tuple(turn(f"{QUESTION} ({n})", f"{ANSWER} ({n})") for n in range(number))


def day(live: int) -> Inputs:
    """The inputs of the next turn when `live` turns of the segment are behind."""
    linked = tuple(
        LinkedMemory(short_id=f"mem_0000000{n}", text=MEMORIES[n], relation="supports")
        for n in (1, 3)
    )
    return inputs(
        QUESTION,
        now=NOW + timedelta(minutes=3 * live),
        last_message_at=NOW + timedelta(minutes=3 * live - 3),
        turns=turns(live),
        earlier=tuple(
            summary(n, title=TITLES[n % 6], trace=TRACE, precis=PRECIS) for n in range(1, 13)
        ),
        continuity=turns(2),
        boundary_end=NOW - timedelta(hours=9),
        manifest=(
            row(0, title=None, ended_at=None),
            *(row(n, title=TITLES[n % 6]) for n in range(1, 30)),
        ),
        memories=tuple(
            memory(text, short_id=f"mem_1000000{n}", linked=linked)
            for n, text in enumerate(MEMORIES)
        ),
        passages=tuple(
            SurfacedPassage(who=who, said_at=NOW - timedelta(days=20), text=PASSAGE)
            for who in (Role.USER, Role.ASSISTANT, Role.USER)
        ),
        directives=DIRECTIVES,
        portrait=PORTRAIT,
    )
