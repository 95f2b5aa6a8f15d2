import type { FastifyInstance, FastifyRequest, RouteOptions } from "fastify";
import { z } from "zod";
import { readVersion } from "#config/read-version.ts";
import { ORIGIN_PLACE, openApiOptions } from "../openapi-options.ts";

const tags = ["Service"];
const html = { content: { "text/html": { schema: z.string() } } };
const DOCS_SCHEMA = { tags, summary: "Read this documentation in a browser", response: { 200: html } };

/** Scripts, styles and requests come from and go to this origin only. Nothing inline runs and nothing is evaluated. */
const DOCS_CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** Declares the access of Swagger UI's routes, which declare none themselves. Hidden routes are not in the document. */
export function openDocsRoutes(route: RouteOptions): void {
  if (!/^\/docs(\/|$)/.test(route.url)) return;
  route.config = { ...route.config, access: "public" };
  route.schema = route.url === "/docs" ? DOCS_SCHEMA : { hide: true };
}

/**
 * Serves `/openapi.json`, and `/docs` as Swagger UI, for every route that is added later. Both are public, because they
 * contain nothing about this installation beyond the source code. The packages are loaded here, because only the HTTP
 * role needs them.
 */
export async function addOpenApi(app: FastifyInstance): Promise<void> {
  const [{ default: swagger }, { default: swaggerUi }] = await Promise.all([
    import("@fastify/swagger"),
    import("@fastify/swagger-ui"),
  ]);
  await app.register(swagger, openApiOptions(readVersion()));
  await app.register(swaggerUi, {
    routePrefix: "/docs",
    staticCSP: DOCS_CSP,
    theme: { title: "Longwatch API" },
    uiConfig: {
      layout: "BaseLayout",
      docExpansion: "list",
      showExtensions: true,
      displayRequestDuration: true,
    },
    uiHooks: {
      // Swagger UI makes its own copies of the document for every request; `/openapi.json` is made once.
      onRequest: ({ routeOptions }, reply, done) => {
        if (/^\/docs\/(json|yaml)$/.test(routeOptions.url ?? "")) void reply.redirect("/openapi.json");
        else done();
      },
    },
  });
  let parts: readonly string[] | null = null;
  const schema = {
    tags,
    summary: "Download the OpenAPI 3.1 document of this API",
    response: { 200: z.looseObject({}) },
  };
  app.get("/openapi.json", { config: { access: "public" }, schema }, async (request, reply) => {
    parts ??= JSON.stringify(app.swagger()).split(ORIGIN_PLACE);
    return reply.type("application/json; charset=utf-8").send(parts.join(originOf(request)));
  });
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
