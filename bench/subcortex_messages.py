"""Sixty messages, each labelled by hand, that hold the reading of messages to its rule.

Straightforward is what can be answered in one step from the message, memory and general knowledge:
a greeting, a statement, an acknowledgement, a simple question or request. Complex is what takes
several steps, weighing, tools, code or numbers, and what is ambiguous.
"""

from __future__ import annotations

from typing import NamedTuple

from mira.messages.subcortex import Complexity, Exchange

S, C = Complexity.STRAIGHTFORWARD, Complexity.COMPLEX


class Labelled(NamedTuple):
    """`about`: of each group of words, one at least belongs into the phrases."""

    words: str
    label: Complexity
    said: tuple[tuple[str, str], ...] = ()
    about: tuple[tuple[str, ...], ...] = ()

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        return tuple(Exchange(user=user, assistant=answer) for user, answer in self.said)


_BIKES = (
    (
        "I can't decide between the Brompton and the Dahon for my commute to Leibnitz.",
        "The Brompton folds smaller, the Dahon rides faster and costs about half.",
    ),
)
_TRIP = (
    ("We fly to Lisbon on the 12th of May.", "Lovely! Is it the whole family?"),
    ("Yes, Nora and the twins too.", "Then I will keep the pram in mind when we plan the days."),
)
_BREAD = (
    ("My rye bread came out dense again.", "How long did the sourdough stand before baking?"),
)
_ZAHN = (("Ich war heute bei Dr. Huber wegen der Krone.", "Ist alles gut gegangen?"),)
_PISO = (("Estamos mirando un piso en Gràcia.", "¿Cuántas habitaciones necesitáis?"),)

MESSAGES: tuple[Labelled, ...] = (
    # Greetings and farewells.
    Labelled("Good morning!", S),
    Labelled("Hi, it's me again", S),
    Labelled("Servus, bin wieder da", S),
    Labelled("¡Buenas noches, hasta mañana!", S),
    # Acknowledgements.
    Labelled("Thanks, that's exactly what I needed.", S, _BREAD),
    Labelled("ok", S, _TRIP),
    Labelled("Perfekt, danke dir.", S, _ZAHN),
    Labelled("Haha, fair point", S, _BIKES),
    # Statements of fact.
    Labelled("My sister Mara moved to Graz last week.", S, about=(("mara", "sister"), ("graz",))),
    Labelled("I'm allergic to hazelnuts.", S, about=(("hazelnut", "allerg"),)),
    Labelled("Our dog Pixel turned three today", S, about=(("pixel", "dog"),)),
    Labelled("I started learning the cello in September.", S, about=(("cello",),)),
    Labelled("Mein Chef heißt jetzt Thomas Brandl.", S, about=(("brandl", "chef"),)),
    Labelled("Mi hija empieza el colegio en septiembre.", S, about=(("hija", "colegio"),)),
    Labelled("We went with the blue one in the end.", S, (
        ("Should we paint the hall blue or grey?", "Blue suits the old tiles better."),
    ), (("hall", "paint"),)),
    # Simple questions and requests.
    Labelled("What's the capital of Slovenia?", S, about=(("slovenia", "capital"),)),
    Labelled("When is Nora's birthday again?", S, about=(("nora",), ("birthday",))),
    Labelled("Which tea do I usually drink in the evening?", S, about=(("tea",),)),
    Labelled("What was the name of the dentist I liked?", S, about=(("dentist",),)),
    Labelled("How do you say 'good luck' in Finnish?", S, about=(("finnish",),)),
    Labelled("Tell me a short joke about cats.", S, about=(("cat",),)),
    Labelled("Where did I say the spare key is?", S, about=(("key",),)),
    Labelled("Remind me what a tritone is", S, about=(("tritone",),)),
    Labelled("Who wrote The Left Hand of Darkness?", S, about=(("left hand of darkness",),)),
    Labelled("Wie heißt der Hund meiner Schwester?", S, about=(("hund", "schwester"),)),
    Labelled("¿Cómo se llama la capital de Perú?", S, about=(("perú", "peru", "capital"),)),
    Labelled("Please call me Alex from now on.", S, about=(("alex", "name"),)),
    # Fragments that the exchanges make clear and simple.
    Labelled("And what does the other one weigh?", S, (
        ("How heavy is the Brompton?", "The Brompton C Line weighs about 11.6 kg."),
        ("I was also looking at the Dahon.", "The Dahon Mu is a good folding bike as well."),
    ), (("dahon",),)),
    Labelled("Yes, the twins too.", S, _TRIP, (("lisbon", "twin", "trip"),)),
    Labelled("Und wann muss ich wieder hin?", S, _ZAHN, (("huber", "krone", "zahn"),)),
    # Several steps.
    Labelled(
        "Plan our four days in Lisbon so that the twins can nap after lunch every day.", C, _TRIP,
        (("lisbon",),),
    ),
    Labelled(
        "Go through what I told you about my expenses this year, group them and tell me where I "
        "could save.", C, about=(("expense", "saving", "budget"),),
    ),
    Labelled(
        "Write a letter to the landlord about the mould, mention the earlier two calls, and then "
        "make a list of what I should photograph.", C, about=(("mould", "landlord"),),
    ),
    Labelled(
        "First find out when Mara is free in May, then suggest three weekends, and draft the "
        "invitation.", C, about=(("mara",),),
    ),
    Labelled("Help me prepare for the job interview at the hospital on Thursday.", C,
             about=(("interview",),)),
    Labelled("Mach mir einen Trainingsplan für den Halbmarathon in zwölf Wochen.", C,
             about=(("halbmarathon", "training"),)),
    Labelled("Organízame la mudanza: qué hacer cada semana hasta el 1 de junio.", C, _PISO,
             (("mudanza", "piso"),)),
    # Weighing one thing against another.
    Labelled("Which of the two should I buy, all things considered?", C, _BIKES,
             (("brompton", "dahon", "bike"),)),
    Labelled("Should I take the job in Vienna or stay where I am?", C, about=(("vienna", "job"),)),
    Labelled("Is it better to repay the loan early or to invest the money?", C,
             about=(("loan",),)),
    Labelled("Compare a heat pump with the gas boiler for our old house.", C,
             about=(("heat pump",),)),
    Labelled("Soll ich die Wohnung mieten oder lieber kaufen?", C, about=(("wohnung",),)),
    Labelled("¿Nos conviene más el piso de Gràcia o la casa en Sitges?", C, _PISO,
             (("gràcia", "sitges", "piso"),)),
    # Code.
    Labelled("Why does `for i in range(len(xs)): xs.pop(i)` skip elements?", C,
             about=(("python", "list", "pop", "loop", "range"),)),
    Labelled("Write a bash script that renames all my photos by the date they were taken.", C,
             about=(("photo",),)),
    Labelled("I get `TypeError: 'NoneType' object is not subscriptable` in the parser, what now?",
             C, about=(("nonetype", "typeerror", "parser"),)),
    Labelled("Refactor this SQL so that it uses a window function: select a, max(b) from t group "
             "by a", C, about=(("sql", "window"),)),
    Labelled("Kannst du mir einen regulären Ausdruck für österreichische IBANs schreiben?", C,
             about=(("iban", "ausdruck"),)),
    # Numbers.
    Labelled("If I save 340 euros a month at 2.5 % interest, what will I have after 7 years?", C,
             about=(("save", "saving", "interest"),)),
    Labelled("We were nine at dinner, the bill was 412.60 and Tom had paid 60 in advance. Who owes "
             "what?", C, about=(("dinner", "bill", "tom"),)),
    Labelled("How many litres of paint do I need for two rooms of 4 by 5 metres, 2.6 m high?", C,
             about=(("paint",),)),
    Labelled("Was bleibt mir von 3.480 brutto netto, wenn ich auf 30 Stunden gehe?", C,
             about=(("brutto", "netto", "gehalt", "stunden"),)),
    Labelled("¿Cuánto pagaríamos al mes por una hipoteca de 280.000 a 25 años al 3,1 %?", C, _PISO,
             (("hipoteca",),)),
    # Tools.
    Labelled("Search the web for flights to Lisbon under 150 euros and tell me the best one.", C,
             _TRIP, (("lisbon", "flight"),)),
    Labelled("Set reminders for all of the appointments that I mentioned this week.", C,
             about=(("reminder", "appointment"),)),
    Labelled("Look through my notes on the garden and put everything about roses into one "
             "document.", C, about=(("rose", "garden"),)),
    # Ambiguous.
    Labelled("Can you do something about it?", C),
    Labelled("That didn't work either.", C, _BREAD, (("bread", "sourdough", "rye"),)),
    Labelled("Same as last time, but different", C),
    Labelled("Mach das bitte noch mal anders.", C),
)  # fmt: skip
