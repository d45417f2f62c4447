// The HTTP calls about segments, the prompt and traces. All raise what `call` raises.

import { call } from "./api.js";

const BUSY = 30_000; // longer than the server waits for a running turn before it says "busy"

/** A page: `{segments, next_cursor}`, newest first. */
export function page({ cursor = null, limit = 30 } = {}) {
  const query = new URLSearchParams({ limit: String(limit) });
  if (cursor !== null) query.set("cursor", cursor);
  return call(`/v1/segments?${query}`);
}

/** Do `act` (pause, resume, collapse) with the open segment; resolves to it. */
export const steer = (act) =>
  call(`/v1/segments/active/${act}`, { method: "POST", signal: AbortSignal.timeout(BUSY) });

/** Try the summary of a segment that failed again now; resolves to the segment. */
export const retry = (id) => call(`/v1/segments/${encodeURIComponent(id)}/retry`, { method: "POST" });

/** `{sections}`: the prompt as it was last sent. */
export const workingMemory = () => call("/v1/working-memory");

/** How the answer of a turn came about. */
export const trace = (turnId) => call(`/v1/turns/${encodeURIComponent(turnId)}/trace`);

export const message = (id) => call(`/v1/messages/${encodeURIComponent(id)}`);
