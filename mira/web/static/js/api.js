// The few HTTP calls of the page. The session travels in its cookie, which no script can read.

export class ApiError extends Error {
  constructor(status, problem) {
    super(problem?.detail || problem?.title || `The server answered ${status}.`);
    this.status = status;
    this.code = problem?.code ?? "";
  }
}

const LONGEST_WAIT = 15_000;

export async function call(path, options) {
  const response = await fetch(path, {
    credentials: "same-origin",
    cache: "no-store",
    signal: AbortSignal.timeout(LONGEST_WAIT),
    ...options,
  });
  const isJson = /json/.test(response.headers.get("content-type") ?? "");
  const body = isJson ? await response.json() : null;
  if (!response.ok) throw new ApiError(response.status, body);
  return body;
}

export const post = (path, body = {}) =>
  call(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

/** Messages, newest first. Raises ApiError when the server says no, another error when it cannot
 *  be reached. */
export function messages(limit, cursor = null) {
  const query = new URLSearchParams({ limit: String(limit) });
  if (cursor !== null) query.set("cursor", cursor);
  return call(`/v1/messages?${query}`);
}

/** Exchange a key for a session cookie. The key is not kept. */
export const signIn = (key) => post("/v1/session", { key });

export const signOut = () => post("/v1/session/logout");
