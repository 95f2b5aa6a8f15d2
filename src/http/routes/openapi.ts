import type { FastifyInstance } from "fastify";
import { readVersion } from "../../config/read-version.ts";
import { DOCS_CSP, originOf, renderDocs } from "../openapi/docs-page.ts";
import { buildOpenApi, type OpenApi, toKnownRoutes } from "../openapi/openapi.ts";
import type { KnownRoute } from "../openapi/openapi-operation.ts";

/** Stands in the page for the address that it is served from; no text of a route holds it. */
const PLACE = "http://place.of.the.origin.invalid";

/**
 * `/openapi.json` and `/docs`, of every route that is added after this. Public: they say nothing of this installation that
 * the source does not.
 */
export function addOpenApi(app: FastifyInstance): void {
  const routes: KnownRoute[] = [];
  let document: OpenApi | null = null;
  let page: readonly string[] | null = null;
  const read = () => (document ??= buildOpenApi(routes, readVersion()));
  app.addHook("onRoute", (route) => void routes.push(...toKnownRoutes(route)));

  const docs = { tag: "Service", summary: "This API as an OpenAPI 3.1 document" };
  app.get("/openapi.json", { config: { access: "public", docs } }, async (_request, reply) =>
    reply.type("application/json; charset=utf-8").send(JSON.stringify(read())),
  );
  const pageDocs = { tag: "Service", summary: "This API for people", responseType: "text/html" };
  app.get("/docs", { config: { access: "public", docs: pageDocs } }, async (request, reply) => {
    page ??= renderDocs(read(), PLACE).split(PLACE);
    const html = page.join(originOf(request));
    return reply.header("content-security-policy", DOCS_CSP).type("text/html; charset=utf-8").send(html);
  });
  // Whoever opens the address alone in a browser.
  const rootDocs = { tag: "Service", summary: "Leads to the documentation" };
  app.get("/", { config: { access: "public", docs: rootDocs } }, async (_request, reply) =>
    reply.redirect("/docs"),
  );
}
