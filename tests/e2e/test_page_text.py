"""What a reply may look like and what it may not do."""

from __future__ import annotations

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.e2e.browser import Chat, Server, script

DRAW = """
async (source) => {
  const { blocksOf } = await import("/static/js/markdown.js");
  const box = document.createElement("div");
  box.className = "prose";
  for (const block of blocksOf(source).blocks) box.append(block.render());
  document.body.append(box);
  return box.innerHTML;
}
"""

CODE = '```python\nprint("hello")\n```'


def draw(page: Page, source: str) -> str:
    html: str = page.evaluate(DRAW, source)
    return html


def test_markdown_becomes_headings_lists_tables_and_links(bare: Page) -> None:
    html = draw(
        bare,
        "# Title\n\n**bold** *soft* ~~gone~~ `code`\n\n1. one\n2. two\n\n- [x] done\n\n"
        "> quoted\n\n| a | b |\n|--|--:|\n| 1 | 2 |\n\n[a link](https://example.org/x)",
    )
    for tag in ("<h1>", "<strong>", "<em>", "<del>", "<code>", "<ol>", "<table>", "<blockquote>"):
        assert tag in html
    assert 'rel="noopener noreferrer"' in html


@pytest.mark.parametrize(
    "source",
    [
        "<script>window.pwned = 1</script>",
        '<img src="x" onerror="window.pwned = 1">',
        "<svg onload='window.pwned = 1'><a xlink:href='javascript:1'>x</a></svg>",
        '<iframe srcdoc="<script>parent.pwned = 1</script>"></iframe>',
        '<form action="https://evil.example"><input name="key"></form>',
        '<a href="javascript:window.pwned = 1">x</a>',
        "[x](javascript:window.pwned=1)",
        "[x](JaVaScRiPt:window.pwned=1)",
        "[x](data:text/html,<script>1</script>)",
        "[x](vbscript:1)",
        '<style>body { display: none }</style><p style="position:fixed">x</p>',
        '<div id="chat" class="bubble">x</div>',
        '<math><mtext><table><mglyph><style><img src=x onerror="window.pwned=1">',
        "<b onclick='window.pwned = 1'>x</b>",
        '<meta http-equiv="refresh" content="0;url=https://evil.example">',
        '<base href="https://evil.example">',
    ],
)
def test_html_in_a_reply_is_shown_and_never_obeyed(bare: Page, source: str) -> None:
    draw(bare, source)
    box = bare.locator("body > .prose")
    forbidden = "script, iframe, form, style, svg, math, img, meta, base, [id], [style], [onerror]"
    assert box.locator(forbidden).count() == 0
    assert box.locator("a[href]").count() == 0
    assert bare.evaluate("() => window.pwned") is None
    expect(bare.get_by_role("heading", name="Sign in")).to_be_visible()


def test_html_is_sanitised_even_where_it_gets_past_the_markdown(bare: Page) -> None:
    left = bare.evaluate(
        "async () => { const { sanitise } = await import('/static/js/markdown.js');"
        " const box = document.createElement('div');"
        ' box.append(sanitise(\'<p id=a class=turn><a href="javascript:1">x</a>'
        '<script>1</script><input type=text><code class="language-py hero">y</code></p>\'));'
        " return box.innerHTML; }"
    )
    assert left == "<p><a>x</a><code>y</code></p>"


def test_pictures_from_elsewhere_are_links_and_are_not_fetched(bare: Page, server: Server) -> None:
    asked: list[str] = []
    bare.on("request", lambda request: asked.append(request.url))
    draw(
        bare,
        "![a tracker](https://evil.example/pixel.png?q=secret)\n\n![ours](/v1/messages)\n\n"
        "![dot](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42m"
        "NkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==)",
    )
    link = bare.get_by_role("link", name="Picture: a tracker")
    expect(link).to_have_attribute("rel", "noopener noreferrer")
    expect(bare.get_by_alt_text("dot")).to_be_visible()
    assert bare.locator("body > .prose img").count() == 1
    assert [url for url in asked if "data:" not in url and "/static/" not in url] == []


def test_the_code_of_a_reply_can_be_copied(
    chat: Chat, profile: BrowserContext, server: Server
) -> None:
    profile.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    script(server, {"contains": "code please", "text": f"Here:\n\n{CODE}\n"})
    turn = chat.say("code please").reaches("complete")
    copy = turn.element.get_by_role("button", name="Copy the python code")
    copy.click()
    expect(copy).to_contain_text("Copied")
    assert chat.page.evaluate("() => navigator.clipboard.readText()") == 'print("hello")\n'


def test_a_whole_reply_can_be_copied_as_it_was_written(
    chat: Chat, profile: BrowserContext, server: Server
) -> None:
    profile.grant_permissions(["clipboard-read", "clipboard-write"], origin=server.url)
    script(server, {"contains": "copy all", "text": "**All** of it"})
    turn = chat.say("copy all").reaches("complete")
    turn.button("Copy the reply").click()
    expect(turn.button("Copy the reply")).to_contain_text("Copied")
    assert chat.page.evaluate("() => navigator.clipboard.readText()") == "**All** of it"


def test_a_streamed_reply_looks_as_if_it_had_come_at_once(chat: Chat, server: Server) -> None:
    source = (
        f"# One\n\nSee [that][1].\n\n- a\n- b\n\n{CODE}\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\n"
        "Last *words*.\n\n[1]: https://example.org/reference"
    )
    script(server, {"contains": "bit by bit", "text": source, "token_ms": 15})
    turn = chat.say("bit by bit").reaches("complete")
    expect(turn.text.get_by_role("link", name="that")).to_be_visible()
    live = turn.text.evaluate("(prose) => prose.innerHTML")
    at_once = chat.page.evaluate(DRAW, source)
    assert live == at_once


def test_the_page_speaks_to_its_own_server_alone_under_a_strict_policy(
    page: Page, server: Server
) -> None:
    asked: list[str] = []
    complaints: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda line: complaints.append(line.text) if line.type == "error" else None)
    script(server)
    chat = Chat(page).open(server.signin_link())
    chat.say("a word <b>and</b> `another`").reaches("complete")
    assert {url.split("/")[2] for url in asked} == {server.url.split("/")[2]}
    assert complaints == []
    policy = page.request.get(server.url).headers["content-security-policy"]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";") if rule.strip()}
    assert rules["default-src"] == ["'none'"]
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == ["'self'"]
    assert rules["img-src"] == ["'self'", "data:"]
    page.evaluate(
        "() => { const script = document.createElement('script');"
        " script.textContent = 'window.pwned = 1'; document.head.append(script); }"
    )
    assert page.evaluate("() => window.pwned") is None
