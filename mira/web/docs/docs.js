// Draws openapi.json. Everything is set as text, nothing as markup.

const make = (tag, props = {}, ...children) => {
  const element = Object.assign(document.createElement(tag), props);
  element.append(...children);
  return element;
};

const nameOf = (ref) => ref.split("/").at(-1);

/** A schema in a few words, with the names of models as they are. */
function words(schema) {
  if (!schema) return "";
  if (schema.$ref) return nameOf(schema.$ref);
  if (schema.anyOf) return schema.anyOf.map(words).join(" | ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.type === "array") return `[${words(schema.items) || "…"}]`;
  if (schema.type === "object" && schema.properties) return "object";
  return [schema.type ?? "any", schema.format].filter(Boolean).join(" · ");
}

function rows(head, lines) {
  const table = make("table");
  table.append(make("tr", {}, ...head.map((text) => make("th", { scope: "col", textContent: text }))));
  for (const line of lines) {
    table.append(make("tr", {}, ...line.map((text) => make("td", {}, make("code", { textContent: text })))));
  }
  return table;
}

function model(schema) {
  const required = new Set(schema.required ?? []);
  return rows(
    ["field", "type", ""],
    Object.entries(schema.properties ?? {}).map(([name, field]) => [
      name,
      words(field),
      required.has(name) ? "required" : "default" in field ? `default ${JSON.stringify(field.default)}` : "",
    ]),
  );
}

function endpoint(method, path, operation, schemas) {
  const inside = make("div", { className: "inside" });
  if (operation.description) inside.append(make("p", { textContent: operation.description.replaceAll("`", "") }));
  if (operation.parameters.length) {
    inside.append(
      rows(
        ["parameter", "in", "type"],
        operation.parameters.map((p) => [p.name, p.in, words(p.schema)]),
      ),
    );
  }
  const [kind, sent] = Object.entries(operation.requestBody?.content ?? {})[0] ?? ["", null];
  const body = sent?.schema;
  if (body) {
    inside.append(make("p", { textContent: `Body: ${words(body)}  ${kind}` }));
    if (body.$ref) inside.append(model(schemas[nameOf(body.$ref)]));
  }
  inside.append(
    rows(
      ["answer", "", "model"],
      Object.entries(operation.responses).map(([status, response]) => {
        const [kind, content] = Object.entries(response.content ?? {})[0] ?? ["", null];
        return [status, response.description, content ? `${words(content.schema)}  ${kind}` : ""];
      }),
    ),
  );
  return make(
    "details",
    {},
    make(
      "summary",
      {},
      make("span", { className: "method", textContent: method.toUpperCase() }),
      make("span", { className: "path", textContent: path }),
      make("span", { className: "about", textContent: operation.summary }),
    ),
    inside,
  );
}

const main = document.getElementById("endpoints");
try {
  const api = await (await fetch("/openapi.json")).json();
  const { schemas } = api.components;
  document.getElementById("about").textContent = `${api.info.description} Version ${api.info.version}.`;
  const groups = new Map();
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const tag = operation.tags[0];
      if (!groups.has(tag)) groups.set(tag, []);
      groups.get(tag).push(endpoint(method, path, operation, schemas));
    }
  }
  const sections = [...groups].map(([tag, items]) =>
    make("section", {}, make("h2", { textContent: tag }), ...items),
  );
  const models = Object.entries(schemas)
    .sort(([a], [b]) => a.localeCompare(b))
    .map(([name, schema]) =>
      make(
        "details",
        {},
        make("summary", {}, make("span", { className: "path", textContent: name })),
        make("div", { className: "inside" }, make("p", { textContent: schema.description ?? "" }),
          schema.properties ? model(schema) : make("code", { textContent: words(schema) })),
      ),
    );
  main.replaceChildren(...sections, make("section", {}, make("h2", { textContent: "models" }), ...models));
} catch {
  main.replaceChildren(make("p", { textContent: "openapi.json could not be read." }));
}
main.removeAttribute("aria-busy");
