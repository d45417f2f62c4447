"""Which model does what: from settings and keys to a routing for each purpose.

`MIRA_MODEL` is `provider:model` (`anthropic:…`, `openai:…`, or `local`), `MIRA_MODEL_<PURPOSE>`
the same for one purpose, `MIRA_FALLBACK_MODEL` one or more of them, with commas, for when the
first cannot answer. Where nothing is named, the provider whose key or address is known is used
with a model of ours: see DEFAULTS. With no key and no address, it is the local model.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import get_args
from urllib.parse import urlsplit

import httpx2
import msgspec
from pydantic import SecretStr

from mira.clock import AlarmClock
from mira.errors import MiraError, StartupRefused
from mira.ids import Ids
from mira.llm import anthropic, local, openai
from mira.llm.anthropic import AnthropicProvider
from mira.llm.anthropic_batch import AnthropicBatches
from mira.llm.base import Provider
from mira.llm.batch import Batches
from mira.llm.health import Health
from mira.llm.local import LOCAL_NOTICE, LocalProvider
from mira.llm.local_server import LocalServer
from mira.llm.openai import OpenAIProvider
from mira.llm.routing import Policy, Routing
from mira.settings import Purpose, Settings
from mira.telemetry import logger

_log = logger("llm")

SecretSource = Callable[[str], Awaitable[str | None]]


class Defaults(msgspec.Struct, frozen=True):
    """The models of a provider that are used when only its key is set."""

    main: str
    quick: str


#: For OpenAI, models that take tools through chat completions: not all of its newest do.
DEFAULTS = {
    "anthropic": Defaults("claude-sonnet-5-5", "claude-haiku-5-5"),
    "openai": Defaults("gpt-6.1-terra", "gpt-6-luna"),
    "local": Defaults(local.MODEL, local.MODEL),
}

#: Purposes with many small calls, for which the quick model does.
QUICK: frozenset[Purpose] = frozenset({"subcortex", "extraction", "observer"})

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)

_REMEDY = (
    "Write provider:model, with anthropic, openai or local as the provider, "
    "for example anthropic:claude-sonnet-5-5."
)


def parse(name: str, variable: str = "MIRA_MODEL") -> tuple[str, str]:
    """Split `provider:model`; the model may be left out, and may itself contain colons.

    Raises StartupRefused, naming `variable`, if there is no such provider.
    """
    provider, _, model = name.strip().partition(":")
    provider, model = provider.strip().lower(), model.strip()
    if provider not in DEFAULTS:
        raise StartupRefused(f"{variable} does not name a provider that MIRA knows.", _REMEDY)
    if provider == local.PROVIDER and model not in ("", local.MODEL):
        raise StartupRefused(f"{variable} names a local model other than {local.MODEL}.", _REMEDY)
    return provider, model


def _address(given: str | None, variable: str) -> str | None:
    """A base address that can be used; None if none is given. Raises StartupRefused."""
    address = (given or "").strip()
    if not address:
        return None
    try:
        parts = urlsplit(address)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise StartupRefused(
            f"{variable} is not an address.", "Write it as http://host:port or https://host/path."
        )
    return address


class Models:
    """The routings of the process. Made by `build`."""

    def __init__(
        self,
        settings: Settings,
        secret: SecretSource,
        clock: AlarmClock,
        ids: Ids,
        *,
        policy: Policy | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._settings = settings
        self._secret = secret
        self._clock = clock
        self._ids = ids
        self._policy = policy or Policy(
            first_token=settings.first_token_timeout, stall=settings.stall_timeout
        )
        self._health = Health(clock)
        # Longer than any deadline of the routing, which knows more than a socket does.
        silence = max(self._policy.first_token, self._policy.stall) + 30
        self._anthropic = anthropic.connect(
            self._anthropic_key,
            _address(settings.anthropic_base_url, "ANTHROPIC_BASE_URL"),
            silence=silence,
            transport=transport,
        )
        self._openai = openai.connect(
            self._openai_key,
            _address(settings.openai_base_url, "OPENAI_BASE_URL"),
            silence=silence,
            transport=transport,
        )
        self._server = LocalServer()
        self._providers: dict[tuple[str, str], Provider] = {}
        self._routings: dict[Purpose, Routing] = {}
        self._anthropic_keyed = False

    def for_purpose(self, purpose: Purpose) -> Routing:
        """The routing for a purpose: always the same object, whatever models it now uses."""
        return self._routings[purpose]

    def batches(self, purpose: Purpose) -> Batches | None:
        """Batches of the model that a purpose prefers; None where it has none, or no key is set."""
        first = self._routings[purpose].chain[0]
        if not isinstance(first, AnthropicProvider) or not self._anthropic_keyed:
            return None
        return AnthropicBatches(first.model, self._anthropic, self._clock)

    @property
    def notice(self) -> str | None:
        """What the user must know of the model that answers, if anything."""
        return LOCAL_NOTICE if self.for_purpose("conversation").name == _LOCAL else None

    def chosen(self) -> dict[Purpose, tuple[str, ...]]:
        """For each purpose the names of its models, first choice first."""
        return {p: tuple(m.name for m in r.chain) for p, r in self._routings.items()}

    async def refresh(self) -> None:
        """Read keys again and choose anew; to be called when a key was set or removed.

        Raises StartupRefused if a setting names an unknown provider.
        """
        for connection in (self._anthropic, self._openai):
            if await connection.refresh():
                self._health.forget()
        default = await self._default_provider()
        self._anthropic_keyed = await self._anthropic_key() is not None
        for purpose in PURPOSES:
            chain = self._chain(purpose, default)
            if routing := self._routings.get(purpose):
                routing.use(chain)
            else:
                self._routings[purpose] = Routing(
                    chain, self._clock, self._ids, health=self._health, policy=self._policy
                )

    async def warm(self) -> None:
        """Load what the first answer would wait for. A failure is logged and met again later."""
        for name, provider in {r.name: r.chain[0] for r in self._routings.values()}.items():
            try:
                await provider.warm()
            except MiraError as error:
                _log.warning("model_not_ready", model=name, code=error.code)

    async def aclose(self) -> None:
        """Close every connection and the local model. Idempotent."""
        for provider in self._providers.values():
            await provider.aclose()
        await self._anthropic.aclose()
        await self._openai.aclose()
        await self._server.aclose()

    # Choosing.

    async def _default_provider(self) -> str:
        if await self._anthropic_key():
            return "anthropic"
        if await self._openai_key():
            return "openai"
        if self._settings.anthropic_base_url:
            return "anthropic"
        if self._settings.openai_base_url:
            return "openai"
        return local.PROVIDER

    def _chain(self, purpose: Purpose, default: str) -> list[Provider]:
        settings = self._settings
        own = getattr(settings, f"model_{purpose}", None)
        name = own or settings.model
        variable = f"MIRA_MODEL_{purpose.upper()}" if own else "MIRA_MODEL"
        wanted = [parse(name, variable) if name else (default, "")]
        named = (settings.fallback_model or "").split(",")
        wanted += [parse(one, "MIRA_FALLBACK_MODEL") for one in named if one.strip()]
        chain: list[Provider] = []
        for provider, model in wanted:
            made = self._provider(provider, model or self._default_model(provider, purpose))
            if made not in chain:
                chain.append(made)
        return chain

    def _default_model(self, provider: str, purpose: Purpose) -> str:
        if provider == "openai" and self._openai.base_url not in (None, openai.OFFICIAL):
            return ""  # somebody else's endpoint: it is asked what it has
        defaults = DEFAULTS[provider]
        return defaults.quick if purpose in QUICK else defaults.main

    def _provider(self, provider: str, model: str) -> Provider:
        made = self._providers.get((provider, model))
        if made is None:
            made = self._make(provider, model)
            self._providers[provider, model] = made
        return made

    def _make(self, provider: str, model: str) -> Provider:
        match provider:
            case "anthropic":
                return AnthropicProvider(model, self._anthropic, self._clock)
            case "openai":
                return OpenAIProvider(model, self._openai, self._clock)
            case _:
                return LocalProvider(self._server, self._clock)

    # Keys.

    async def _anthropic_key(self) -> str | None:
        return await self._key(self._settings.anthropic_api_key, "anthropic_api_key")

    async def _openai_key(self) -> str | None:
        return await self._key(self._settings.openai_api_key, "openai_api_key")

    async def _key(self, given: SecretStr | None, name: str) -> str | None:
        value = given.get_secret_value() if given else ""
        return (value or await self._secret(name) or "").strip() or None


_LOCAL = f"{local.PROVIDER}:{local.MODEL}"


async def build(
    settings: Settings,
    secret: SecretSource,
    clock: AlarmClock,
    ids: Ids,
    *,
    policy: Policy | None = None,
    transport: httpx2.AsyncBaseTransport | None = None,
) -> Models:
    """Choose the models of this process. Connects to nothing; `warm` does, and the first call.

    `secret` reads the key store: names `anthropic_api_key` and `openai_api_key`. Keys in the
    settings come first. `transport` replaces the network of all providers but the local one.
    Raises StartupRefused if a setting names an unknown provider, or an address that is none.
    """
    models = Models(settings, secret, clock, ids, policy=policy, transport=transport)
    await models.refresh()
    return models
