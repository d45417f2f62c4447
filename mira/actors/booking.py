"""From a physical call of a provider to its line in the books."""

from __future__ import annotations

from uuid import UUID

from mira.llm.base import CallRecord
from mira.store.turns import NewCall


def booked(call_id: UUID, call: CallRecord, purpose: str) -> NewCall:
    """A call, failed or not, as it is written down under what it was made for."""
    return NewCall(
        id=call_id,
        purpose=purpose,
        provider=call.provider,
        model=call.model,
        input_tokens=call.usage.input_tokens,
        output_tokens=call.usage.output_tokens,
        cache_read_tokens=call.usage.cache_read_tokens,
        cache_write_tokens=call.usage.cache_write_tokens,
        reported=call.usage.reported,
        first_event_ms=call.first_event_ms,
        total_ms=call.total_ms,
        error=call.error,
    )
