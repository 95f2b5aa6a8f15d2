import { escapeMarkup } from "#lib/text.ts";

interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly items?: Schema;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly description?: string;
  readonly [rule: string]: unknown;
}

type Content = Readonly<Record<string, { readonly schema?: Schema; readonly example?: unknown }>>;

interface DocumentedOperation {
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly schema: Schema;
  }[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses?: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
  readonly "x-scope"?: string;
}

/** The parts of the OpenAPI document that the page shows. */
export interface Documented {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, DocumentedOperation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** Returns the page that shows an OpenAPI document. It needs no script, and its only style sheet is `styles`. */
export function renderDocs({ info, tags, paths, components }: Documented, styles: string): string {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const sections = tags.map(({ name, description }) => {
    const own = operations.filter(({ operation }) => operation.tags?.includes(name) === true);
    const shown = own.map(({ path, method, operation }) => renderOperation(method, path, operation));
    return `<section><h2 id="${toId(name)}">${escapeMarkup(name)}</h2>${toProse(description)}${shown.join("\n")}</section>`;
  });
  const schemas = Object.entries(components.schemas).map(
    ([name, schema]) =>
      `<details><summary><code>${escapeMarkup(name)}</code></summary><pre id="schema-${escapeMarkup(name)}">${wordType(schema)}</pre></details>`,
  );
  const links = [...tags.map(({ name }) => name), "Schemas"].map(
    (name) => `<li><a href="#${toId(name)}">${escapeMarkup(name)}</a></li>`,
  );
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeMarkup(info.title)} API</title><link rel="icon" href="data:,"><link rel="stylesheet" href="${styles}"></head>
<body><header><h1>${escapeMarkup(info.title)} API ${escapeMarkup(info.version)}</h1>
<p>For programs: <a href="/openapi.json">the OpenAPI 3.1 document</a>.</p></header>
<nav aria-label="Subjects"><ul>${links.join("")}</ul></nav>
<main>${toProse(info.description)}
${sections.join("\n")}
<section><h2 id="${toId("Schemas")}">Schemas</h2>${schemas.join("\n")}</section></main></body></html>
`;
}

function renderOperation(method: string, path: string, operation: DocumentedOperation): string {
  const { summary = "", description = "", parameters = [], requestBody, responses = {} } = operation;
  const scope = operation["x-scope"];
  const access = scope === "public" ? "Needs no key." : `Needs a key with the scope \`${scope}\`.`;
  const answers = Object.entries(responses).map(([status, answer]) => {
    const bodies = Object.entries(answer.content ?? {}).map(
      ([type, { schema = {} }]) => `${escapeMarkup(type)}<pre>${wordType(schema)}</pre>`,
    );
    return `<tr><th scope="row">${escapeMarkup(status)}</th><td>${escapeMarkup(answer.description)}</td><td>${bodies.join("")}</td></tr>`;
  });
  const asked = parameters.map(
    ({ name, in: place, required = false, description: about = "", schema }) =>
      `<tr><th scope="row"><code>${escapeMarkup(name)}</code></th><td>${escapeMarkup(place)}${required ? ", required" : ""}</td><td><code>${wordType(schema)}</code> ${wordRules(schema)}<br>${toCode(about)}</td></tr>`,
  );
  const bodies = Object.entries(requestBody?.content ?? {}).map(
    ([type, { schema = {} }]) =>
      `<h3>Body: ${escapeMarkup(type)}${requestBody?.required === true ? "" : ", optional"}</h3><pre>${wordType(schema)}</pre>`,
  );
  return `<details><summary><b data-method="${escapeMarkup(method)}">${escapeMarkup(method.toUpperCase())}</b> <code>${escapeMarkup(path)}</code> ${escapeMarkup(summary)}</summary>
${toProse(description)}${toProse(access)}<pre>${escapeMarkup(toCommand(method, path, operation))}</pre>
${asked.length === 0 ? "" : `<h3>Parameters</h3><table>${asked.join("")}</table>`}
${bodies.join("")}
<h3>Answers</h3><table>${answers.join("")}</table></details>`;
}

function toCommand(method: string, path: string, { requestBody, ...operation }: DocumentedOperation): string {
  const { schema, example = schema?.["examples"] } = requestBody?.content["application/json"] ?? {};
  const [body] = [example].flat();
  return [
    `curl -s${method === "get" ? "" : ` -X ${method.toUpperCase()}`}`,
    ...(operation["x-scope"] === "public" ? [] : [`-H "AccessKey: $KEY"`]),
    ...(requestBody === undefined ? [] : [`-H "Content-Type: application/json"`]),
    ...(body === undefined ? [] : [`-d '${JSON.stringify(body).replaceAll("'", `'\\''`)}'`]),
    `"$LONGWATCH${path}"`,
  ].join(" ");
}

/** Returns a schema in the notation of TypeScript, as HTML. */
function wordType(schema: Schema, margin = ""): string {
  const { $ref, enum: words, anyOf, oneOf, items, properties, additionalProperties, type = "any" } = schema;
  const name = $ref?.split("/").at(-1);
  if (name !== undefined) return `<a href="#schema-${escapeMarkup(name)}">${escapeMarkup(name)}</a>`;
  if (schema.const !== undefined) return escapeMarkup(JSON.stringify(schema.const));
  if (words !== undefined) return words.map((word) => escapeMarkup(JSON.stringify(word))).join(" | ");
  const options = anyOf ?? oneOf;
  if (options !== undefined) return options.map((option) => wordType(option, margin)).join(" | ");
  if (items !== undefined) return `Array&lt;${wordType(items, margin)}&gt;`;
  if (properties !== undefined) {
    const inner = `${margin}  `;
    const lines = Object.entries(properties).map(([member, of]) => {
      const mark = schema.required?.includes(member) === true ? "" : "?";
      const about = [wordRules(of), toCode(of.description ?? "")].filter((text) => text !== "").join(". ");
      return `${inner}${escapeMarkup(member)}${mark}: ${wordType(of, inner)}${about === "" ? "" : ` <i>// ${about}</i>`}`;
    });
    return `{\n${lines.join("\n")}\n${margin}}`;
  }
  if (typeof additionalProperties === "object")
    return `{ [name]: ${wordType(additionalProperties, margin)} }`;
  return [type].flat().map(escapeMarkup).join(" | ");
}

const RULES = ["minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems", "format", "default"];

function wordRules(schema: Schema): string {
  const rules = RULES.filter((rule) => schema[rule] !== undefined);
  return rules.map((rule) => `${rule} ${escapeMarkup(JSON.stringify(schema[rule]))}`).join(", ");
}

function toId(name: string): string {
  return `of-${name.replaceAll(/[^A-Za-z0-9]+/g, "-")}`;
}

/** Returns text with blocks between three backticks and code between single ones as HTML. */
function toProse(text: string): string {
  return text
    .split(/```(?:sh)?\n?/)
    .map((part, index) => (index % 2 === 1 ? `<pre>${escapeMarkup(part)}</pre>` : `<p>${toCode(part)}</p>`))
    .filter((part) => part !== "<p></p>")
    .join("");
}

function toCode(text: string): string {
  return escapeMarkup(text).replaceAll(/`([^`]+)`/g, "<code>$1</code>");
}
