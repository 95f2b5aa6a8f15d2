/** The description of the API, and the page that shows it. */
import { readFileSync } from "node:fs";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { readVersion } from "#config/read-version.ts";
import { escapeMarkup } from "#lib/text.ts";
import { ORIGIN_PLACE, openApiOptions } from "../openapi-options.ts";

const tags = ["Service"];
const html = { content: { "text/html": { schema: z.string() } } };

/** The page runs no script, and loads its style sheet only. */
const DOCS_CSP =
  "default-src 'none'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const DOCS_STYLES = "/docs/docs.css";

/** Addresses of earlier versions. */
const MOVED = [
  ["/docs/", "/docs"],
  ["/docs/json", "/openapi.json"],
  ["/docs/yaml", "/openapi.json"],
] as const;

/**
 * Serves `/openapi.json`, and `/docs` as a page for people, for every route that is added later. Both are public, because
 * they contain nothing about this installation beyond the source code. The package is loaded here, because only the HTTP
 * role needs it.
 */
export async function addOpenApi(app: FastifyInstance): Promise<void> {
  const { default: swagger } = await import("@fastify/swagger");
  await app.register(swagger, openApiOptions(readVersion()));
  const styles = readFileSync(new URL("../page/docs-page.css", import.meta.url), "utf8");
  const config = { access: "public" } as const;
  const schema = {
    tags,
    summary: "Download the OpenAPI 3.1 document of this API",
    response: { 200: z.looseObject({}) },
  };
  const docs = { tags, summary: "Read this documentation in a browser", response: { 200: html } };
  const documentFor = forOrigins(() => JSON.stringify(app.swagger()));
  const pageFor = forOrigins(() => renderDocs(app.swagger() as unknown as Documented, DOCS_STYLES));
  app.get("/openapi.json", { config, schema }, async (request, reply) =>
    reply.type("application/json; charset=utf-8").send(documentFor(originOf(request))),
  );
  app.get("/docs", { config, schema: docs }, async (request, reply) =>
    reply
      .type("text/html; charset=utf-8")
      .header("content-security-policy", DOCS_CSP)
      .send(pageFor(originOf(request))),
  );
  const hidden = { config, schema: { hide: true } };
  app.get(DOCS_STYLES, hidden, async (_request, reply) => reply.type("text/css; charset=utf-8").send(styles));
  for (const [url, to] of MOVED) app.get(url, hidden, async (_request, reply) => reply.redirect(to));
}

/** The number of origins whose texts are kept. */
const MOST_ORIGINS = 8;

/** Returns a function from an origin to the text for it. The same body each time is compressed only once. */
function forOrigins(make: () => string): (origin: string) => Buffer {
  const made = new Map<string, Buffer>();
  let parts: readonly string[] | null = null;
  return (origin) => {
    parts ??= make().split(ORIGIN_PLACE);
    const body = made.get(origin) ?? Buffer.from(parts.join(origin));
    if (made.size >= MOST_ORIGINS) made.clear();
    made.set(origin, body);
    return body;
  };
}

/** Redirects a browser from `/` to the documentation if there is no console. */
export function addRedirectToDocs(app: FastifyInstance): void {
  const root = { tags, summary: "Redirect to the documentation", response: { 200: html } };
  app.get("/", { config: { access: "public" }, schema: root }, async (_request, reply) =>
    reply.redirect("/docs"),
  );
}

const FALLBACK_ORIGIN = "http://127.0.0.1:8080";

/** Returns the request's origin for the commands in the document; a usual one if the host is unsafe in a shell. */
function originOf({ protocol, host }: Pick<FastifyRequest, "protocol" | "host">): string {
  return /^[A-Za-z0-9.-]+(?::\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](?::\d{1,5})?$/.test(host)
    ? `${protocol}://${host}`
    : FALLBACK_ORIGIN;
}

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
interface Documented {
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
