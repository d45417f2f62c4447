// The HTTP calls about memories. All raise what `call` raises.

import { call, post } from "./api.js";

const at = (id, more = "") => `/v1/memories/${encodeURIComponent(id)}${more}`;

function asked(path, fields) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(fields)) {
    if (value !== null && value !== undefined && value !== "") query.set(name, String(value));
  }
  return call(`${path}?${query}`);
}

/** A page: `{memories, next_cursor}`. `order` is importance or recent. */
export const page = ({ status, order, cursor = null, limit = 40 }) =>
  asked("/v1/memories", { status, order, cursor, limit });

export const search = (q, limit = 30) => asked("/v1/memories/search", { q, limit });

export const get = (id) => call(at(id));

export const create = (fields) => post("/v1/memories", fields);

/** Change what is given in `fields`; `version` is the one that was shown. */
export const edit = (id, version, fields) =>
  call(at(id), {
    method: "PATCH",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ version, ...fields }),
  });

export const remove = (id) => call(at(id), { method: "DELETE" });

export const confirm = (id) => post(at(id, "/confirm"));

export const archive = (id) => post(at(id, "/archive"));

export const restore = (id) => post(at(id, "/restore"));

export const events = (id) => call(at(id, "/events"));

export const links = (id) => call(at(id, "/links"));

export const explain = (id) => call(at(id, "/explain"));

export const undo = (id, eventId) => post(at(id, "/undo"), { event_id: eventId });

/** Nodes and edges: of the memories that matter most, or around one. */
export const graph = (around = null, limit = 60) => asked("/v1/memories/graph", { around, limit });
