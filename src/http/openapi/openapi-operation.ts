import type { FastifySchema } from "fastify";
import { z } from "zod";
import { isObject } from "../../lib/is-object.ts";
import type { Access } from "../keys/access.ts";
import { type JsonSchema, toJsonSchema } from "./openapi-schema.ts";
import type { RouteDocs } from "./route-docs.ts";

export interface KnownRoute {
  readonly method: string;
  /** As Fastify writes it: `/api/v1/alerts/:id`. */
  readonly url: string;
  readonly access: Access;
  readonly schema: FastifySchema;
  readonly docs: RouteDocs | null;
  readonly refuses: readonly number[];
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: Content }>>;
  readonly security: readonly Readonly<Record<string, readonly string[]>>[];
  /** The scope that a key needs, or public. */
  readonly "x-scope": string;
}

export interface Parameter {
  readonly name: string;
  readonly in: "path" | "query" | "header";
  readonly required: boolean;
  readonly description?: string;
  readonly schema: JsonSchema;
  readonly style?: "form";
  readonly explode?: false;
}

export type Content = Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;

/** `/alerts/:id` as `/alerts/{id}`; a wildcard is a parameter too. */
export function toPath(url: string): string {
  return url.replace(/:([A-Za-z]\w*)(\([^)]*\))?\??/g, "{$1}").replace(/\*/g, "{rest}");
}

export function toOperation(
  route: KnownRoute,
  components: Map<string, JsonSchema>,
  problem: JsonSchema,
): Operation {
  const { method, url, access, schema, docs } = route;
  const path = toPath(url);
  const description = schema.description ?? docs?.description;
  const body = schema.body ?? docs?.body;
  return {
    operationId: toOperationId(method, path),
    tags: [...(schema.tags ?? [docs?.tag ?? guessTag(url)])],
    summary: schema.summary ?? docs?.summary ?? `${method} ${path}`,
    ...(description === undefined ? {} : { description }),
    parameters: toParameters(path, route, components),
    ...(body === undefined ? {} : { requestBody: toRequestBody(body, docs?.example, components) }),
    responses: toResponses(route, components, problem),
    security: access === "public" ? [] : [{ AccessKey: [] }],
    "x-scope": access === "public" ? "public" : access.scope,
  };
}

/** A path with a slash at its end is another path, and its operation another one. */
function toOperationId(method: string, path: string): string {
  const words = path.replace(/[^A-Za-z0-9]+(.)?/g, (_, next: string = "") => next.toUpperCase());
  return `${method.toLowerCase()}${words}${path.length > 1 && path.endsWith("/") ? "Slash" : ""}`;
}

function guessTag(url: string): string {
  if (url.startsWith("/api/v1/keys")) return "Keys";
  return url.startsWith("/shield/") || url.startsWith("/apikey") ? "Archive (the platform's API)" : "Service";
}

function toParameters(
  path: string,
  { schema, docs }: KnownRoute,
  components: Map<string, JsonSchema>,
): Parameter[] {
  const inPath = toMembers(schema.params, "path", components);
  const unnamed = [...path.matchAll(/\{(\w+)\}/g)]
    .map(([, name = ""]) => name)
    .filter((name) => !inPath.some((one) => one.name === name))
    .map((name) => ({
      name,
      in: "path" as const,
      required: true,
      schema: PATH_TYPES[name] ?? { type: "string" },
    }));
  return [
    ...inPath,
    ...unnamed,
    ...toMembers(schema.querystring ?? docs?.query, "query", components),
    ...toMembers(schema.headers, "header", components),
  ];
}

function toMembers(
  schema: unknown,
  place: Parameter["in"],
  components: Map<string, JsonSchema>,
): Parameter[] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = toJsonSchema(schema, "input", components);
  return Object.entries(properties as Record<string, JsonSchema>).map(([name, { description, ...type }]) => ({
    name,
    in: place,
    required: place === "path" || (required as readonly string[]).includes(name),
    ...(typeof description === "string" ? { description } : {}),
    schema: type,
    // Words apart by commas.
    ...(type["type"] === "array" ? ({ style: "form", explode: false } as const) : {}),
  }));
}

function toRequestBody(schema: unknown, given: unknown, components: Map<string, JsonSchema>) {
  const { example = given, ...body } = toJsonSchema(schema, "input", components);
  const isOptional = schema instanceof z.ZodType && schema.safeParse(undefined).success;
  const content = { schema: body, ...(example === undefined ? {} : { example }) };
  return { required: !isOptional, content: { "application/json": content } };
}

function toResponses(
  route: KnownRoute,
  components: Map<string, JsonSchema>,
  problem: JsonSchema,
): Operation["responses"] {
  const { schema, docs } = route;
  const own = isObject(schema.response)
    ? schema.response
    : { 200: docs?.response ?? (docs?.responseType === undefined ? {} : z.string()) };
  // The contract of the platform's bodies says what is sent, not what its reader makes of it.
  const io = docs?.response === undefined ? "output" : "input";
  const good = Object.entries(own).map(([status, one]) => {
    const { contentType = docs?.responseType ?? "application/json", ...type } = toJsonSchema(
      one,
      io,
      components,
    );
    const description = DESCRIPTIONS[status] ?? "Done";
    if (status === "204") return [status, { description }] as const;
    return [status, { description, content: { [String(contentType)]: { schema: type } } }] as const;
  });
  const content = { "application/problem+json": { schema: problem } };
  const bad = docs?.refusals
    ? toRefusals(docs.refusals, components)
    : refusedStatuses(route).map((status) => [status, { description: describe(status), content }] as const);
  // The platform's own paths answer with the platform's own errors.
  const rest = { description: "Any other error", ...(docs?.refusals ? {} : { content }) };
  return Object.fromEntries([...good, ...bad, ["default", rest]]) as Operation["responses"];
}

function refusedStatuses({ access, schema, refuses }: KnownRoute): string[] {
  const isChecked = [schema.querystring, schema.body, schema.params, schema.headers].some(Boolean);
  return [
    ...(access === "public" ? [] : ["401", "403", "429"]),
    ...(schema.params === undefined ? [] : ["404"]),
    ...(isChecked ? ["400"] : []),
    ...(schema.body === undefined ? [] : ["413", "415"]),
    ...refuses.map(String),
  ];
}

function toRefusals(refusals: NonNullable<RouteDocs["refusals"]>, components: Map<string, JsonSchema>) {
  return Object.entries(refusals).map(([status, bodies]) => {
    const content = Object.entries(bodies).map(
      ([type, body]) => [type, { schema: toJsonSchema(body, "input", components) }] as const,
    );
    return [status, { description: describe(status), content: Object.fromEntries(content) }] as const;
  });
}

function describe(status: string): string {
  return DESCRIPTIONS[status] ?? "Refused";
}

/** Of parameters in the platform's paths (platform API spec 4.7 to 4.11) what is not just text. */
const PATH_TYPES: Readonly<Record<string, JsonSchema>> = {
  shieldZoneId: { type: "integer", format: "int32" },
  date: { type: "string", pattern: "^\\d{2}-\\d{2}-\\d{4}$", example: "11-21-2026" },
};

const DESCRIPTIONS: Readonly<Record<string, string>> = {
  "200": "The answer",
  "201": "Made",
  "202": "Not done: the status block says why",
  "204": "Done",
  "400": "The request breaks rules, all of which are named",
  "401": "No key, or none that is valid",
  "403": "The key lacks the scope or the zone",
  "404": "There is none, or none that the key may know of",
  "409": "It does not stand as this needs it",
  "413": "The body is too large",
  "415": "The body is of another media type",
  "422": "Each value is possible, but not beside the others",
  "429": "Too many requests",
  "503": "Too busy, or the question would take too long",
};
