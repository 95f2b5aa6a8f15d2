import { createHash } from "node:crypto";
import { escapeMarkup } from "../feed/escape-markup.ts";
import { describeType, listMembers, type Member } from "./describe-schema.ts";
import { DOCS_STYLE } from "./docs-style.ts";
import type { OpenApi } from "./openapi.ts";
import type { Content, Operation, Parameter } from "./openapi-operation.ts";
import type { JsonSchema } from "./openapi-schema.ts";

const STYLE_HASH = createHash("sha256").update(DOCS_STYLE).digest("base64");
/** Nothing runs, nothing is loaded, nothing is sent anywhere: the page is text and its own style. */
export const DOCS_CSP = `default-src 'none'; style-src 'sha256-${STYLE_HASH}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`;

interface Shown {
  readonly path: string;
  readonly method: string;
  readonly operation: Operation;
}

const FALLBACK_ORIGIN = "http://127.0.0.1:8080";

/** The address that a request was sent to, as a word of a shell; a usual one where the request names none that is safe. */
export function originOf({ protocol, host }: { readonly protocol: string; readonly host: string }): string {
  return /^[A-Za-z0-9.-]+(?::\d{1,5})?$|^\[[0-9A-Fa-f:.]+\](?::\d{1,5})?$/.test(host)
    ? `${protocol}://${host}`
    : FALLBACK_ORIGIN;
}

/** The document as one page of HTML without scripts, for a reader at `origin`. Every text of it is escaped. */
export function renderDocs(document: OpenApi, origin = FALLBACK_ORIGIN): string {
  const { info, tags, paths, components } = document;
  const shown = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]): Shown => ({ path, method, operation })),
  );
  const ofTag = (name: string) => shown.filter(({ operation }) => operation.tags.includes(name));
  const nav = tags.map(({ name }) => `<h2>${escapeMarkup(name)}</h2>${ofTag(name).map(renderLink).join("")}`);
  const parts = tags.map(
    ({ name }) =>
      `<h2 class="tag">${escapeMarkup(name)}</h2>\n${ofTag(name).map(renderOperation).join("\n")}`,
  );
  const schemas = Object.entries(components.schemas).map(([name, schema]) => renderComponent(name, schema));
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escapeMarkup(info.title)} API</title><style>${DOCS_STYLE}</style></head>
<body><div class="frame"><nav aria-label="Operations">${nav.join("\n")}<h2>Schemas</h2>${Object.keys(
    components.schemas,
  )
    .map((name) => `<a href="#schema-${escapeMarkup(name)}">${escapeMarkup(name)}</a>`)
    .join("")}</nav>
<main><h1>${escapeMarkup(info.title)} API</h1><p>Version ${escapeMarkup(info.version)} · <a href="/openapi.json">OpenAPI 3.1</a></p>
<p>${renderText(info.description)}</p>
<pre>export LONGWATCH=${escapeMarkup(origin)} KEY=lw_...
curl -sH "AccessKey: $KEY" "$LONGWATCH/api/v1/status"</pre>
${parts.join("\n")}
<h2 class="tag">Schemas</h2>
${schemas.join("\n")}
</main></div></body></html>
`;
}

function renderLink({ method, path, operation }: Shown): string {
  return `<a href="#${operation.operationId}" title="${escapeMarkup(operation.summary)}">${renderMethod(method)}${escapeMarkup(shorten(path))}</a>`;
}

/** As far as it tells operations apart. */
function shorten(path: string): string {
  return path.replace(/^\/api\/v1/, "").replace(/^\/shield\/waf\/rules\/review-triggered/, "…");
}

function renderMethod(method: string): string {
  return `<span class="method ${escapeMarkup(method)}">${escapeMarkup(method.toUpperCase())}</span>`;
}

function renderOperation(shown: Shown): string {
  const { method, path, operation } = shown;
  const { operationId, summary, description, parameters, requestBody, responses } = operation;
  const scope = operation["x-scope"];
  return `<section class="operation" id="${escapeMarkup(operationId)}">
<h3>${renderMethod(method)}<code>${escapeMarkup(path)}</code><span class="scope">${
    scope === "public" ? "no key" : `scope ${escapeMarkup(scope)}`
  }</span></h3>
<p>${renderText(summary)}.</p>${description === undefined ? "" : `<p>${renderText(description)}</p>`}
${renderParameters(parameters)}
${requestBody === undefined ? "" : `<h4>Body${requestBody.required ? "" : " (may be left out)"}</h4>${renderContent(requestBody.content)}`}
${Object.entries(responses)
  .filter(([status]) => status.startsWith("2"))
  .map(([status, { description: said, content }]) => renderResponse(status, said, content))
  .join("")}
${renderErrors(responses)}
<h4>Example</h4><pre>${escapeMarkup(toCurl(shown))}</pre>
</section>`;
}

function renderParameters(parameters: readonly Parameter[]): string {
  if (parameters.length === 0) return "";
  const rows = parameters.map(({ name, in: place, required, description = "", schema }) => {
    const preset = schema["default"] === undefined ? "" : ` Default ${JSON.stringify(schema["default"])}.`;
    const needed = required ? ' <span class="needed">needed</span>' : "";
    const said = description.includes("Default") ? description : `${description}${preset}`;
    return `<tr><td><code>${escapeMarkup(name)}</code>${needed}</td><td>${place}, ${describeType(schema)}</td><td>${renderText(said.trim())}</td></tr>`;
  });
  return `<h4>Parameters</h4><table><tr><th>Name</th><th>Where, type</th><th>Meaning</th></tr>${rows.join("")}</table>`;
}

function renderContent(content: Content): string {
  return Object.entries(content)
    .map(([type, { schema, example }]) => {
      const sample =
        example === undefined ? "" : `<pre>${escapeMarkup(JSON.stringify(example, null, 2))}</pre>`;
      return `<p><code>${escapeMarkup(type)}</code></p>${renderMembers(listMembers(schema))}${sample}`;
    })
    .join("");
}

function renderResponse(status: string, description: string, content: Content | undefined): string {
  const types = Object.entries(content ?? {});
  const body = types.map(([type, { schema }]) => {
    const members = listMembers(schema);
    const what = members.length === 0 && Object.keys(schema).length > 0 ? describeType(schema) : "";
    return `<summary><code>${escapeMarkup(status)}</code> ${escapeMarkup(description)} · <code>${escapeMarkup(type)}</code> ${what}</summary>${renderMembers(members)}`;
  });
  if (body.length === 0)
    return `<h4>Answer</h4><p><code>${escapeMarkup(status)}</code> ${escapeMarkup(description)}</p>`;
  return `<h4>Answer</h4><details open>${body.join("")}</details>`;
}

function renderErrors(responses: Operation["responses"]): string {
  const statuses = Object.entries(responses).filter(([status]) => /^[45]/.test(status));
  if (statuses.length === 0) return "";
  const rows = statuses.map(
    ([status, { description }]) =>
      `<tr><td><code>${status}</code></td><td>${escapeMarkup(description)}</td></tr>`,
  );
  return `<details><summary>Errors</summary><table class="errors">${rows.join("")}</table></details>`;
}

function renderMembers(members: readonly Member[]): string {
  if (members.length === 0) return "";
  const rows = members.map(({ name, isRequired, schema }) => {
    const said = schema["description"];
    const about = typeof said === "string" ? renderText(said) : "";
    const needed = isRequired ? "" : " (may be missing)";
    return `<tr><td><code>${escapeMarkup(name)}</code></td><td>${describeType(schema)}${needed}</td><td>${about}</td></tr>`;
  });
  return `<table>${rows.join("")}</table>`;
}

function renderComponent(name: string, schema: JsonSchema): string {
  const members = listMembers(schema);
  const body = members.length === 0 ? `<p>${describeType(schema)}</p>` : renderMembers(members);
  return `<section class="operation" id="schema-${escapeMarkup(name)}"><h3>${escapeMarkup(name)}</h3>${body}</section>`;
}

/** Text with code in backticks. */
function renderText(text: string): string {
  return escapeMarkup(text).replace(/`([^`]+)`/g, "<code>$1</code>");
}

/** A command to copy: with what is needed and nothing else. */
function toCurl({ method, path, operation }: Shown): string {
  const { parameters, requestBody } = operation;
  const needed = parameters.filter((one) => one.in === "query" && one.required);
  const query = needed.map(({ name }) => `${name}=${SAMPLES[name] ?? "..."}`).join("&");
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => SAMPLES[name] ?? "17");
  const [type, content] = Object.entries(requestBody?.content ?? {})[0] ?? [];
  const isStream =
    "200" in operation.responses && "text/event-stream" in (operation.responses["200"]?.content ?? {});
  const isSent = content?.example !== undefined && type !== undefined;
  return [
    `curl -s${isStream ? "N" : ""}${method === "get" ? "" : `X ${method.toUpperCase()}`}`,
    operation.security.length === 0 ? "" : ` -H "AccessKey: $KEY"`,
    isSent ? ` \\\n  -H "Content-Type: ${type}" -d '${JSON.stringify(content.example)}' \\\n ` : "",
    ` "$LONGWATCH${filled}${query === "" ? "" : `?${query}`}"`,
  ].join("");
}

const SAMPLES: Readonly<Record<string, string>> = {
  zone: "101",
  shieldZoneId: "101",
  ruleId: "942100",
  rule: "942100",
  date: "11-21-2026",
};
