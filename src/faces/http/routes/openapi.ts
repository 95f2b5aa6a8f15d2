import { readFileSync } from "node:fs";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { z } from "zod";
import { readVersion } from "#config/read-version.ts";
import { ORIGIN_PLACE, openApiOptions } from "../openapi-options.ts";
import { type Documented, renderDocs } from "../page/docs-page.ts";

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
