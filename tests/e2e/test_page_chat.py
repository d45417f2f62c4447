"""Talking to MIRA on the page: replies live, queued messages, stopping, trying again."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from tests.e2e.browser import Chat, Server, say_elsewhere, script

WORDS = " ".join(f"word{n}" for n in range(60))
#: Long enough to be seen in the middle, and stopped there.
SLOW = {"text": WORDS, "token_ms": 50}
ENDLESS = {"text": " ".join(f"word{n}" for n in range(5000)), "token_ms": 40}


def test_a_reply_is_shown_while_it_is_written(chat: Chat, server: Server) -> None:
    script(server, {"contains": "count", **SLOW})
    turn = chat.say("count for me")
    expect(turn.text).to_contain_text("word3")
    turn.reaches("running")
    expect(turn.text).not_to_contain_text("word59")
    turn.reaches("complete")
    expect(turn.text).to_have_text(WORDS)


def test_thinking_is_folded_until_it_is_opened(chat: Chat, server: Server) -> None:
    script(server, {"contains": "riddle", "thinking": "First the wolf.", "text": "Seven trips."})
    turn = chat.say("solve the riddle").reaches("complete")
    thought = turn.element.get_by_text("First the wolf.")
    expect(thought).to_be_hidden()
    turn.element.get_by_text("Thought").click()
    expect(thought).to_be_visible()
    expect(turn.text).to_have_text("Seven trips.")


def test_messages_sent_meanwhile_wait_and_are_answered_in_order(chat: Chat, server: Server) -> None:
    script(server, {"contains": "first of three", **SLOW})
    first = chat.say("first of three")
    second = chat.say("second of three")
    third = chat.say("third of three")
    first.reaches("running")
    expect(second.element).to_contain_text("Waiting")
    expect(third.element).to_contain_text("Waiting")
    third.reaches("complete")
    second.reaches("complete")
    said = chat.page.locator(".bubble").filter(has_text="of three").all_inner_texts()
    assert said == ["first of three", "second of three", "third of three"]
    expect(third.text).to_have_text("third of three")


def test_a_waiting_message_can_be_withdrawn(chat: Chat, server: Server) -> None:
    script(server, {"contains": "take your time", **ENDLESS})
    first = chat.say("take your time")
    expect(first.text).to_contain_text("word1")
    second = chat.say("never mind this one")
    second.button("Withdraw").click()
    chat.page.get_by_role("button", name="Stop the reply").click()
    first.reaches("cancelled")
    second.reaches("cancelled")
    expect(second.text).to_have_count(0)


def test_escape_stops_the_reply_and_keeps_what_was_written(chat: Chat, server: Server) -> None:
    script(server, {"contains": "stop at some point", **ENDLESS})
    turn = chat.say("stop at some point")
    expect(turn.text).to_contain_text("word5")
    chat.page.keyboard.press("Escape")
    turn.reaches("cancelled")
    expect(turn.element).to_contain_text("Stopped")
    kept = turn.text.inner_text()
    assert WORDS.startswith(kept[:40])
    expect(chat.page.get_by_role("button", name="Stop the reply")).to_be_hidden()
    chat.page.reload()
    expect(turn.text).to_have_text(kept)
    expect(turn.element).to_contain_text("Stopped")


def test_a_failure_is_explained_and_trying_again_helps(chat: Chat, server: Server) -> None:
    refusal = {"status": 400, "type": "invalid_request_error", "message": "no such model"}
    script(server, {"contains": "will it work", "error": refusal, "times": 1})
    turn = chat.say("will it work?").reaches("failed")
    expect(turn.element.get_by_role("alert")).to_contain_text("No reply came")
    turn.button("Try again").click()
    turn.reaches("complete")
    expect(turn.text).to_have_text("will it work?")
    expect(turn.element.get_by_role("alert")).to_have_count(0)


def test_a_failure_is_still_explained_after_a_reload(chat: Chat, server: Server) -> None:
    refusal = {"status": 400, "type": "invalid_request_error", "message": "no such model"}
    script(server, {"contains": "this cannot work", "error": refusal})
    turn = chat.say("this cannot work").reaches("failed")
    chat.page.reload()
    turn.reaches("failed")
    expect(turn.button("Try again")).to_be_visible()


def test_only_the_newest_turn_can_be_tried_again(chat: Chat, server: Server) -> None:
    script(server, {"contains": "stop this early", **ENDLESS})
    turn = chat.say("stop this early")
    expect(turn.text).to_contain_text("word1")
    chat.page.keyboard.press("Escape")
    expect(turn.button("Try again")).to_be_visible()
    chat.say("something else").reaches("complete")
    expect(turn.button("Try again")).to_have_count(0)


def test_what_another_device_says_appears_with_its_answer(chat: Chat, server: Server) -> None:
    say_elsewhere(server, "hello from the kitchen")
    turn = chat.turn("hello from the kitchen").reaches("complete")
    expect(turn.text).to_have_text("hello from the kitchen")


def test_two_pages_show_the_same_reply_live(chat: Chat, browser: Browser, server: Server) -> None:
    script(server, {"contains": "for both of us", **SLOW})
    context = browser.new_context()
    try:
        other = Chat(context.new_page()).open(server.signin_link())
        chat.say("for both of us")
        theirs = other.turn("for both of us")
        expect(theirs.text).to_contain_text("word3")
        theirs.reaches("running")
        theirs.reaches("complete")
        expect(theirs.text).to_have_text(WORDS)
    finally:
        context.close()


def test_shift_enter_breaks_the_line_and_enter_sends(chat: Chat) -> None:
    chat.field.press_sequentially("one")
    chat.field.press("Shift+Enter")
    chat.field.press_sequentially("two")
    expect(chat.field).to_have_value("one\ntwo")
    chat.field.press("Enter")
    expect(chat.field).to_have_value("")
    expect(chat.page.locator(".bubble").last).to_have_text("one\ntwo", use_inner_text=True)


def test_enter_that_chooses_a_word_of_an_input_method_does_not_send(chat: Chat) -> None:
    chat.field.fill("にほん")
    chat.field.evaluate(
        "(field) => field.dispatchEvent(new KeyboardEvent('keydown',"
        " {key: 'Enter', isComposing: true, bubbles: true, cancelable: true}))"
    )
    expect(chat.field).to_have_value("にほん")


def test_blank_and_endless_messages_cannot_be_sent(chat: Chat) -> None:
    send = chat.page.get_by_role("button", name="Send", exact=True)
    chat.field.fill("  \n ")
    expect(send).to_be_disabled()
    chat.field.fill("x" * 100_001)
    expect(send).to_be_disabled()
    expect(chat.page.locator("#count")).to_have_text(re.compile("100,001 of 100,000"))
    chat.field.fill("x" * 100_000)
    expect(send).to_be_enabled()


def test_a_refused_message_can_be_changed_and_sent(chat: Chat) -> None:
    chat.field.fill("a NUL here: \0.")
    chat.field.press("Enter")
    refused = chat.page.locator(".turn[data-state=refused]")
    refused.get_by_role("button", name="Edit").click()
    expect(refused).to_have_count(0)
    chat.field.fill("none here.")
    chat.field.press("Enter")
    chat.turn("none here.").reaches("complete")


def test_each_finished_paragraph_is_told_to_screen_readers_once(chat: Chat, server: Server) -> None:
    text = "The first paragraph.\n\nThe second one.\n\nAnd the third."
    script(server, {"contains": "three paragraphs", "text": text, "token_ms": 30})
    chat.page.evaluate(
        "() => { window.told = []; new MutationObserver((all) => all.forEach((change) =>"
        " change.addedNodes.forEach((node) => window.told.push(node.textContent))))"
        ".observe(document.getElementById('announcer'), {childList: true}); }"
    )
    chat.say("three paragraphs").reaches("complete")
    chat.page.wait_for_function("() => window.told.join(' ').includes('third')")
    told = " ".join(chat.page.evaluate("() => window.told")).split()
    assert " ".join(told) == " ".join(text.split())
