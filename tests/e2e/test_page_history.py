"""The past on the page: loaded in pages, in order, and never all of it at once."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.conftest import Server as LookingServer
from tests.e2e.browser import Chat, Server, say_elsewhere, script


def test_a_reload_shows_the_same_conversation(chat: Chat) -> None:
    for words in ("the first thing", "the second thing"):
        chat.say(words).reaches("complete")
    before = chat.page.locator(".turn").all_inner_texts()
    chat.page.reload()
    expect(chat.turn("the second thing").text).to_have_text("the second thing")
    assert chat.page.locator(".turn").all_inner_texts() == before


def test_turns_stand_under_the_day_on_which_they_were_said(chat: Chat) -> None:
    chat.say("said today").reaches("complete")
    expect(chat.page.locator(".day").last).to_have_text("Today")
    names = chat.page.evaluate(
        "async () => { const { dayName } = await import('/static/js/dates.js');"
        " const now = new Date(2026, 2, 3, 1, 0);"
        " return [new Date(2026, 2, 3, 0, 10), new Date(2026, 2, 2, 23, 50),"
        " new Date(2026, 1, 28), new Date(2024, 1, 29)].map((d) => dayName(d.toISOString(), now));}"
    )
    # Where the commas stand is the browser's affair.
    names = [name.replace(",", "") for name in names]
    assert names == ["Today", "Yesterday", "Saturday 28 February", "Thursday 29 February 2024"]


def test_scrolling_up_brings_the_past_in_order_and_keeps_the_place(
    chat: Chat, server: Server
) -> None:
    for n in range(80):
        say_elsewhere(server, f"message number {n:03}")
    chat.page.reload()
    chat.connected()
    expect(chat.page.locator(".bubble").last).to_have_text("message number 079")
    scroller = chat.page.locator("#scroller")
    for _ in range(100):
        scroller.evaluate("(element) => element.scrollBy(0, -600)")
        if chat.turn("message number 000").element.count():
            break
        chat.page.wait_for_timeout(20)
    shown = [t for t in chat.page.locator(".bubble").all_inner_texts() if t.startswith("message n")]
    assert shown == [f"message number {n:03}" for n in range(len(shown))]
    chat.page.get_by_role("button", name="Latest").click()
    expect(chat.turn("message number 079").element).to_be_in_viewport()


def test_a_reader_of_the_past_is_not_moved_by_what_is_said_now(chat: Chat, server: Server) -> None:
    for n in range(30):
        say_elsewhere(server, f"line {n} " + "and more " * 20)
    chat.page.reload()
    chat.connected()
    scroller = chat.page.locator("#scroller")
    scroller.evaluate("(element) => element.scrollBy(0, -1500)")
    expect(chat.page.get_by_role("button", name="Latest")).to_be_visible()
    place = (
        "() => { const top = document.getElementById('scroller').getBoundingClientRect().top;"
        " const turn = [...document.querySelectorAll('.turn')]"
        ".find((t) => t.getBoundingClientRect().bottom > top + 1);"
        " return [turn.dataset.turn, Math.round(turn.getBoundingClientRect().top)]; }"
    )
    before = chat.page.evaluate(place)
    say_elsewhere(server, "said while you read")
    chat.turn("said while you read").reaches("complete")
    assert chat.page.evaluate(place) == before


MANY = 5_000
SEED = """
with turn as (
  insert into turns (id, user_id, seq, request_id, request_digest, state, attempt,
                     accepted_at, finished_at, settled_at)
  select gen_random_uuid(), $1, n, 'seed-' || n, '', 'complete', 1, at, at, at
  from generate_series(1, $2) n,
    lateral (select now() - make_interval(mins => 10 * ($2 - n)) as at) _
  returning id, seq, accepted_at),
message as (
  insert into messages (id, user_id, turn_id, turn_seq, attempt, position, role, content,
                        created_at)
  select gen_random_uuid(), $1, t.id, t.seq, part, part,
    case part when 0 then 'user' else 'assistant' end,
    jsonb_build_array(jsonb_build_object('type', 'text', 'text',
      case part when 0 then 'question ' || t.seq
      else 'Answer ' || t.seq || repeat(E'\\n\\nMore *words* and `code`.', (t.seq % 7)::int) end)),
    t.accepted_at
  from turn t, generate_series(0, 1) part
  returning 1)
update conversations set next_seq = $2 + 1 from (select count(*) from message) _
where user_id = $1 returning 1
"""


def test_a_thread_of_ten_thousand_messages_stays_smooth(page: Page, server: LookingServer) -> None:
    script(server)
    server.rows(SEED, server.person.id, MANY)
    chat = Chat(page).open(server.signin_link())
    expect(chat.turn(f"question {MANY}").text).to_contain_text(f"Answer {MANY}")
    scroller = page.locator("#scroller")
    first, most = MANY, 0
    for _ in range(600):
        scroller.evaluate("(element) => { element.scrollTop = 0; }")
        page.wait_for_timeout(20)
        first = int(page.locator(".bubble").first.inner_text().split()[1])
        most = max(most, page.locator(".turn").count())
        if first <= MANY - 400:
            break
    assert first <= MANY - 400, "scrolling up must bring older messages"
    shown = [int(text.split()[1]) for text in page.locator(".bubble").all_inner_texts()]
    assert shown == list(range(first, first + len(shown)))
    assert most <= 100, "what is far away must leave the document"
    page.get_by_role("button", name="Latest").click()
    expect(chat.turn(f"question {MANY}").element).to_be_in_viewport()
    chat.say("and the next one").reaches("complete")
