"""Which model does what, for each way of saying so."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from mira.clock import SystemClock
from mira.errors import ProviderRejected, SecretsUnavailable, StartupRefused
from mira.ids import SeededIds
from mira.llm.base import Finished, Request
from mira.llm.local import LOCAL_NOTICE
from mira.llm.models import DEFAULTS, Models, build, parse
from mira.messages.content import Role, Said, Text
from mira.settings import Settings

pytestmark = pytest.mark.anyio

LOCAL = ("local:smollm2",)
CLAUDE, HAIKU = "anthropic:claude-sonnet-5-5", "anthropic:claude-haiku-5-5"
ASKED = Request(system=(), messages=(Said(role=Role.USER, blocks=(Text(text="Hello?"),)),))
SSE = (
    'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\n'
    "data: [DONE]\n\n"
)


class Store(dict[str, str]):
    """A key store."""

    async def read(self, name: str) -> str | None:
        return self.get(name)


class Network:
    """The network behind the providers; keeps who was called with which key."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.good_key = ""
        self.models = ["only-one"]
        self.transport = httpx2.MockTransport(self._answer)

    async def _answer(self, request: httpx2.Request) -> httpx2.Response:
        key = request.headers["authorization"].removeprefix("Bearer ")
        self.calls.append((str(request.url), key))
        if request.method == "GET":
            data = [{"id": name, "object": "model"} for name in self.models]
            return httpx2.Response(200, json={"object": "list", "data": data})
        if self.good_key and key != self.good_key:
            return httpx2.Response(401, json={"error": {"type": "authentication_error"}})
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=SSE)


async def made(
    store: Store | None = None, network: Network | None = None, **settings: Any
) -> Models:
    names = {name: None for name in Settings.model_fields if "key" in name or "base_url" in name}
    given = Settings.model_construct(**{**Settings().model_dump(), **names, **settings})
    return await build(
        given,
        (store if store is not None else Store()).read,
        SystemClock(),
        SeededIds(),
        transport=network.transport if network else None,
    )


def key(value: str) -> Any:
    from pydantic import SecretStr

    return SecretStr(value)


async def answer(models: Models) -> Finished:
    async with models.for_purpose("conversation").stream(ASKED) as items:
        heard = [item async for item in items]
    last = heard[-1]
    assert isinstance(last, Finished)
    return last


async def test_with_no_key_the_local_model_answers_and_says_what_it_is() -> None:
    models = await made()
    assert set(models.chosen().values()) == {LOCAL}
    assert models.notice == LOCAL_NOTICE
    assert "ANTHROPIC_API_KEY" in LOCAL_NOTICE


async def test_a_key_in_the_environment_is_enough() -> None:
    models = await made(anthropic_api_key=key("a"))
    assert models.chosen()["conversation"] == (CLAUDE,)
    assert models.chosen()["subcortex"] == (HAIKU,)
    assert models.notice is None
    models = await made(openai_api_key=key("o"))
    assert models.chosen()["conversation"] == (f"openai:{DEFAULTS['openai'].main}",)


async def test_a_key_in_the_store_is_enough() -> None:
    models = await made(Store(openai_api_key="o"))
    assert models.chosen()["conversation"] == (f"openai:{DEFAULTS['openai'].main}",)


async def test_with_both_keys_anthropic_is_the_default() -> None:
    models = await made(anthropic_api_key=key("a"), openai_api_key=key("o"))
    assert models.chosen()["conversation"] == (CLAUDE,)


async def test_an_address_without_a_key_is_enough() -> None:
    models = await made(anthropic_base_url="http://127.0.0.1:1")
    assert models.chosen()["conversation"] == (CLAUDE,)
    network = Network()
    models = await made(network=network, openai_base_url="http://127.0.0.1:11434")
    assert (await answer(models)).model == "only-one"
    assert models.chosen()["conversation"] == ("openai:only-one",)
    assert network.calls[-1] == ("http://127.0.0.1:11434/v1/chat/completions", "none")
    await models.aclose()


async def test_among_many_models_of_a_paid_endpoint_none_is_guessed() -> None:
    network = Network()
    network.models = ["cheap", "dear"]
    models = await made(
        network=network, openai_base_url="https://router.example/api/v1", openai_api_key=key("o")
    )
    with pytest.raises(ProviderRejected, match="MIRA_MODEL"):
        await answer(models)
    await models.aclose()


async def test_a_named_model_is_used_for_everything_but_what_has_its_own() -> None:
    models = await made(model="openai:llama3.2:3b", model_critic="anthropic:claude-opus-5-5")
    chosen = models.chosen()
    assert chosen["critic"] == ("anthropic:claude-opus-5-5",)
    assert {chosen[p] for p in chosen if p != "critic"} == {("openai:llama3.2:3b",)}


async def test_fallbacks_follow_in_order_and_none_twice() -> None:
    models = await made(
        model="anthropic:claude-sonnet-5-5",
        fallback_model=" openai:gpt-6-luna , anthropic:claude-sonnet-5-5, local",
    )
    assert models.chosen()["conversation"] == (CLAUDE, "openai:gpt-6-luna", *LOCAL)


@pytest.mark.parametrize(
    ("settings", "variable"),
    [
        ({"model": "claude-sonnet-5-5"}, "MIRA_MODEL"),
        ({"model": "gemini:pro"}, "MIRA_MODEL"),
        ({"model": ":x"}, "MIRA_MODEL"),
        ({"model": "local:other"}, "MIRA_MODEL"),
        ({"model_summary": "nobody:x"}, "MIRA_MODEL_SUMMARY"),
        ({"fallback_model": "nobody:x"}, "MIRA_FALLBACK_MODEL"),
    ],
)
async def test_an_unknown_provider_refuses_the_start_and_names_the_setting(
    settings: dict[str, Any], variable: str
) -> None:
    with pytest.raises(StartupRefused, match=variable) as raised:
        await made(**settings)
    assert "provider:model" in raised.value.remedy


@pytest.mark.parametrize(
    "address", ["localhost:11434", "ftp://x", "http://", "what?", "http://[", "http://x:99999"]
)
async def test_an_address_that_is_none_refuses_the_start(address: str) -> None:
    with pytest.raises(StartupRefused, match="OPENAI_BASE_URL"):
        await made(openai_base_url=address)
    with pytest.raises(StartupRefused, match="ANTHROPIC_BASE_URL"):
        await made(anthropic_base_url=address)


@pytest.mark.parametrize("bad", ["sk one two", "sk-\u00fc", "sk\nX-Evil: 1"])
async def test_a_key_that_is_none_is_refused_without_being_quoted(bad: str) -> None:
    network = Network()
    models = await made(Store(openai_api_key=bad), network)
    with pytest.raises(ProviderRejected, match="no key contains") as raised:
        await answer(models)
    assert bad not in str(raised.value)
    assert network.calls == []


async def test_blanks_around_a_key_do_not_matter() -> None:
    network = Network()
    models = await made(Store(openai_api_key="  sk-1\n"), network)
    await answer(models)
    assert network.calls[-1][1] == "sk-1"
    await models.aclose()


def test_a_provider_alone_means_its_default_model() -> None:
    assert parse("Anthropic") == ("anthropic", "")
    assert parse(" local ") == ("local", "")
    assert parse("openai:org/model:free") == ("openai", "org/model:free")


async def test_a_key_that_is_set_later_takes_over_from_the_local_model() -> None:
    store = Store()
    models = await made(store)
    route = models.for_purpose("conversation")
    assert models.notice is not None
    store["anthropic_api_key"] = "a"
    await models.refresh()
    assert models.for_purpose("conversation") is route
    assert route.name == CLAUDE
    assert models.notice is None


async def test_a_key_that_was_replaced_is_read_again_when_the_old_one_is_refused() -> None:
    network, store = Network(), Store(openai_api_key="old")
    network.good_key = "old"
    models = await made(store, network)
    await answer(models)
    network.good_key = store["openai_api_key"] = "new"
    await answer(models)
    assert [k for _, k in network.calls] == ["old", "old", "new"]
    await models.aclose()


async def test_a_wrong_key_is_a_clear_refusal() -> None:
    network = Network()
    network.good_key = "right"
    models = await made(Store(openai_api_key="wrong"), network)
    with pytest.raises(ProviderRejected, match="refused the key") as raised:
        await answer(models)
    assert "wrong" not in str(raised.value)
    await models.aclose()


async def test_a_named_model_without_a_key_says_that_the_key_is_missing() -> None:
    models = await made(model="anthropic:claude-sonnet-5-5")
    with pytest.raises(ProviderRejected, match="No key for anthropic"):
        await answer(models)


async def test_warming_up_never_fails_the_start() -> None:
    models = await made(model="anthropic:claude-sonnet-5-5")
    await models.warm()


async def test_a_key_store_that_cannot_be_read_says_so() -> None:
    async def sealed(name: str) -> str | None:
        raise SecretsUnavailable("The key store is sealed.")

    with pytest.raises(SecretsUnavailable):
        await build(Settings(), sealed, SystemClock(), SeededIds())


async def test_closing_twice_is_closing_once() -> None:
    models = await made(network=Network(), openai_api_key=key("o"))
    await answer(models)
    await models.aclose()
    await models.aclose()
