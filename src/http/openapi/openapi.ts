import type { RouteOptions } from "fastify";
import { z } from "zod";
import { docsOfRoute } from "./docs-of-route.ts";
import { type KnownRoute, type Operation, toOperation, toPath } from "./openapi-operation.ts";
import { type JsonSchema, toJsonSchema } from "./openapi-schema.ts";

export interface OpenApi {
  readonly openapi: "3.1.0";
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly servers: readonly { readonly url: string }[];
  readonly tags: readonly { readonly name: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<Record<string, object>>;
  };
}

const TAGS = [
  "Alerts",
  "Silences",
  "Trends",
  "Coverage",
  "Deliveries",
  "Keys",
  "Archive (the platform's API)",
  "Service",
];

const Problem = z
  .object({
    type: z.string().describe("Stable: programs may compare it."),
    title: z.string(),
    status: z.number().int(),
    detail: z.string().optional(),
    mistakes: z
      .array(z.object({ field: z.string(), value: z.string().optional(), rule: z.string() }))
      .optional()
      .describe("Every broken rule of the request."),
    requestId: z.string().optional(),
  })
  .meta({ id: "Problem" });

/** What a route says of itself, for the document. */
export function toKnownRoutes({ method, url, config, schema = {} }: RouteOptions): KnownRoute[] {
  const { access = { scope: "admin" }, docs = null, refuses = [] } = config ?? {};
  return [method]
    .flat()
    .filter((one) => one !== "HEAD" && one !== "OPTIONS")
    .map((one) => ({ method: one, url, access, schema, docs: docs ?? docsOfRoute(one, url), refuses }));
}

/** The OpenAPI 3.1 document of these routes, made of the very schemas that check their requests and shape their answers. */
export function buildOpenApi(routes: readonly KnownRoute[], version: string): OpenApi {
  const components = new Map<string, JsonSchema>();
  const problem = toJsonSchema(Problem, "output", components);
  const paths: Record<string, Record<string, Operation>> = {};
  for (const route of routes) {
    const path = toPath(route.url);
    paths[path] = { ...paths[path], [route.method.toLowerCase()]: toOperation(route, components, problem) };
  }
  const used = Object.values(paths).flatMap((operations) =>
    Object.values(operations).flatMap(({ tags }) => tags),
  );
  return {
    openapi: "3.1.0",
    info: {
      title: "Longwatch",
      version,
      description:
        "Lists are paged: ask for `next` as `after`. Times are ISO 8601 in UTC; a request may name a zone's offset or epoch milliseconds instead. Errors are problem+json (RFC 9457). Keys go into the header AccessKey; RateLimit says what is left of a minute's requests. Lists and records have an ETag: with If-None-Match what did not change is 304.",
    },
    servers: [{ url: "/" }],
    tags: [...new Set([...TAGS.filter((tag) => used.includes(tag)), ...used])].map((name) => ({ name })),
    paths,
    components: {
      schemas: Object.fromEntries([...components].sort(([a], [b]) => (a < b ? -1 : 1))),
      securitySchemes: { AccessKey: { type: "apiKey", in: "header", name: "AccessKey" } },
    },
  };
}
