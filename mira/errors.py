"""The one error tree.

    MiraError                      what is meant for a caller: a code, a status, a sentence
    ├ ValidationFailed             validation_error 422: the input is not acceptable
    │ └ Malformed                  validation_error 400: the input cannot even be read
    ├ Unauthorized                 unauthorized 401
    ├ Forbidden                    forbidden 403
    ├ NotFound                     not_found 404
    ├ Conflict                     conflict 409
    │ └ StaleEpoch                 this activation was replaced; its writes are refused
    ├ TooLarge                     too_large 413
    ├ RateLimited                  rate_limited 429, with retry_after
    │ └ MailboxFull                the mailbox has no room
    ├ ProviderError                provider_error 502: a model provider answered badly
    │ ├ ProviderRejected           it refused this request; sending it again cannot help
    │ ├ ContextOverflow            the request is longer than the model can read
    │ ├ ProviderMalformed          it answered what its protocol does not allow, or nothing
    │ └ ProviderOutage             it cannot be reached, is overloaded, stalled or broke off
    ├ Unavailable                  unavailable 503
    │ ├ DatabaseUnavailable        Postgres cannot be reached
    │ ├ EmbedderUnavailable        the embedding model is not loaded, or cannot be
    │ ├ SecretsUnavailable         the key store cannot be reached, is sealed or cannot be read
    │ ├ DeadlineExceeded           an ask was not answered in time
    │ ├ ActorFailed                the handler failed; the failure is in the log
    │ ├ ActorQuarantined           the address failed too often and rests
    │ └ SystemStopped              the engine is stopping
    ├ DeadlockError                an ask would wait for itself
    └ StartupRefused               the process will not start: a reason and a remedy

Anything that is not a MiraError is a bug or the outside world, and is never shown to a client.
"""

from __future__ import annotations

from typing import ClassVar


class MiraError(Exception):
    """An error with a meaning for the caller. `detail` may be shown; it holds no secret."""

    code: ClassVar[str] = "internal"
    status: ClassVar[int] = 500
    #: True when trying again later may help without any change and the fault lies outside:
    #: a durable message that meets it is tried again without losing an attempt.
    outage: ClassVar[bool] = False

    def __init__(self, detail: str = "") -> None:
        super().__init__(detail or type(self).__name__)
        self.detail = detail or type(self).__name__


class ValidationFailed(MiraError):
    """The input is not acceptable. `fields` names what is wrong where."""

    code = "validation_error"
    status = 422

    def __init__(self, detail: str = "", fields: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(detail)
        self.fields = fields


class Malformed(ValidationFailed):
    """The input is not what its content type says: broken JSON, broken UTF-8, no JSON at all."""

    status = 400


class Unauthorized(MiraError):
    code = "unauthorized"
    status = 401


class Forbidden(MiraError):
    code = "forbidden"
    status = 403


class NotFound(MiraError):
    code = "not_found"
    status = 404


class Conflict(MiraError):
    code = "conflict"
    status = 409


class StaleEpoch(Conflict):
    """Another activation has taken over; nothing was written."""


class TooLarge(MiraError):
    code = "too_large"
    status = 413


class RateLimited(MiraError):
    """Too much at once. `retry_after` is in seconds."""

    code = "rate_limited"
    status = 429

    def __init__(self, detail: str = "", retry_after: float = 1.0) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class MailboxFull(RateLimited):
    """The mailbox has no room and the sender did not want to wait."""


class ProviderError(MiraError):
    """A model provider did not give what was asked. `provider` names it.

    `calls` are the records of the calls that were made, once routing has given up.
    """

    code = "provider_error"
    status = 502

    def __init__(
        self,
        detail: str = "",
        *,
        provider: str = "",
        http_status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(detail)
        self.provider = provider
        self.http_status = http_status
        self.retry_after = retry_after
        self.calls: tuple[object, ...] = ()


class ProviderRejected(ProviderError):
    """The provider refused this very request (bad key, unknown model, bad input)."""


class ContextOverflow(ProviderError):
    """The request is longer than the model's window."""


class ProviderMalformed(ProviderError):
    """The answer breaks its own protocol, or is blank."""


class ProviderOutage(ProviderError):
    """Unreachable, overloaded, rate limited, stalled, or broken off in the middle."""

    outage = True


class Unavailable(MiraError):
    code = "unavailable"
    status = 503


class DatabaseUnavailable(Unavailable):
    outage = True


class EmbedderUnavailable(Unavailable):
    """Texts cannot be made vectors now: whoever searches goes on by words alone."""

    outage = True


class SecretsUnavailable(Unavailable):
    outage = True


class DeadlineExceeded(Unavailable):
    """The deadline of an ask passed before its answer."""


class ActorFailed(Unavailable):
    """The handler raised something that is not a MiraError. Details are in the log only."""


class ActorQuarantined(Unavailable):
    """The address failed more often than allowed and rests. `retry_after` is in seconds."""

    outage = True

    def __init__(self, detail: str = "", retry_after: float = 1.0) -> None:
        super().__init__(detail)
        self.retry_after = retry_after


class SystemStopped(Unavailable):
    outage = True


class DeadlockError(MiraError):
    """The ask goes up in rank, or to an address that is already waiting for this one."""

    code = "internal"


class StartupRefused(MiraError):
    """The process will not start. `detail` is the reason, `remedy` what to do about it."""

    code = "startup_refused"

    def __init__(self, reason: str, remedy: str) -> None:
        super().__init__(reason)
        self.remedy = remedy
