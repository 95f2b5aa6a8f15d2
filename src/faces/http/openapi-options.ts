import type {
  FastifyDynamicSwaggerOptions,
  SwaggerTransform,
  SwaggerTransformObject,
} from "@fastify/swagger";
import type { RouteOptions } from "fastify";
import { createJsonSchemaTransform, createJsonSchemaTransformObject } from "fastify-type-provider-zod";
import { z } from "zod";
import { isObject } from "#lib/json.ts";
import { Problem } from "./errors/problem.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Statuses with which the route refuses a request that its schemas accept. */
    refuses?: readonly number[];
  }
  interface FastifySchema {
    /** The scope that a key needs, or `public`. */
    "x-scope"?: string;
  }
}

const TAGS: Readonly<Record<string, string>> = {
  Events: "Search, export and revisions of the stored events",
  Alerts: "Alerts, their acknowledgement, marks and verdicts, as lists, stream and feed",
  Silences: "Silences of alerts",
  Trends: "Rules with their counts, spikes, thresholds and proposed exclusions",
  Coverage: "Proof that no event is missing: hours, gaps, runs and archive days",
  Forwarding: "What each destination has acknowledged",
  Deliveries: "Channels, notifications and the routing of alerts",
  Keys: "API keys and sessions",
  "Archive (the platform's API)":
    "The requests and answers of the edge platform, over everything that is kept",
  Service: "Status, settings, jobs, saved views, audit trail and probes of this service",
};

/** Placeholder for the address from which the document is served. No text of a route contains it. */
export const ORIGIN_PLACE = "http://place.of.the.origin.invalid";

const DESCRIPTION = `Lists are paged. Send the \`next\` of a page as \`after\` to get the following page. Times in answers are ISO 8601 in UTC. A request may use another UTC offset, or epoch milliseconds. Errors are problem+json (RFC 9457). Send the key in the header AccessKey. Routes that are not the platform's also take it in the header Authorization, after the word Bearer. The header RateLimit shows how many requests are left in this minute. Lists and records have an ETag. A request with If-None-Match is answered with 304 if nothing has changed.

\`\`\`sh
export LONGWATCH=${ORIGIN_PLACE} KEY=lw_...
curl -sH "AccessKey: $KEY" "$LONGWATCH/api/v1/status"
\`\`\``;

const zodToJsonConfig: NonNullable<Parameters<typeof createJsonSchemaTransform>[0]["zodToJsonConfig"]> = {
  override({ zodSchema, jsonSchema }) {
    const { wire, description } = jsonSchema as Record<string, unknown>;
    // The other words of a schema's meta are for other faces and no keywords of JSON Schema.
    const { id: _id, title: _title, examples: _examples, ...inner } = z.globalRegistry.get(zodSchema) ?? {};
    for (const name of Object.keys(inner)) if (name !== "description") delete jsonSchema[name];
    // A query's members are text for the schema that reads them; `wire` in a schema's meta says what a client sends.
    if (isObject(wire)) {
      for (const name of Object.keys(jsonSchema)) delete jsonSchema[name];
      Object.assign(jsonSchema, wire, description === undefined ? {} : { description });
      return;
    }
    // Every number of JSON is within these limits.
    if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
    if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    // Generators of clients read members by name, and not the names that `propertyNames` allows.
    const { required, additionalProperties, propertyNames } = jsonSchema;
    if (required !== undefined && propertyNames !== undefined && additionalProperties !== undefined) {
      delete jsonSchema.propertyNames;
      jsonSchema.properties = Object.fromEntries(required.map((name) => [name, additionalProperties]));
      jsonSchema.additionalProperties = false;
    }
    // The contract of the platform's bodies transforms what it reads, and a transform has no JSON Schema. Its input does.
    const { def } = zodSchema._zod;
    if (def.type === "pipe" && Object.keys(jsonSchema).length === 0)
      Object.assign(jsonSchema, toInputJson(def.in));
  },
};

function toInputJson(schema: z.core.$ZodType): object {
  const { $schema: _$schema, ...json } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" });
  return json;
}

/** Returns the options for the OpenAPI 3.1 document, made from the schemas that check requests and write answers. */
export function openApiOptions(version: string): FastifyDynamicSwaggerOptions {
  return {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Longwatch",
        version,
        description: DESCRIPTION,
        license: { name: "Apache License 2.0", identifier: "Apache-2.0" },
      },
      servers: [{ url: ORIGIN_PLACE }],
      tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
      components: {
        securitySchemes: {
          AccessKey: { type: "apiKey", in: "header", name: "AccessKey" },
          Session: { type: "apiKey", in: "cookie", name: "longwatch_session" },
          Bearer: { type: "http", scheme: "bearer" },
          Basic: {
            type: "http",
            scheme: "basic",
            description: "The key is the password, with any user name.",
          },
        },
      },
    },
    convertConstToEnum: false,
    transform: describeRoute,
    transformObject: finish,
  };
}

const toJson = createJsonSchemaTransform({ zodToJsonConfig });
const addComponents = createJsonSchemaTransformObject({ zodToJsonConfig });

/** Adds the parts that follow from the route's access and schemas: operationId, security, scope and refusals. */
const describeRoute: SwaggerTransform = ({ url, route, ...document }) => {
  const { schema = {} } = route;
  if (schema.hide === true) return { schema, url };
  const { access = { scope: "admin" }, errorForm, takesBasic } = route.config ?? {};
  const own = errorForm === undefined ? [{ Bearer: [] }] : [];
  const basic = takesBasic === true ? [{ Basic: [] }] : [];
  const schemes = [{ AccessKey: [] }, ...own, ...basic, { Session: [] }];
  const described = toJson({
    ...document,
    route,
    url,
    schema: {
      ...schema,
      operationId: toOperationId(String(route.method), url),
      security: access === "public" ? [] : schemes,
      response: describeResponses(route),
      "x-scope": access === "public" ? "public" : access.scope,
    },
  });
  // Several words of one member are separated by commas.
  if (isObject(described.schema.querystring))
    Object.assign(described.schema.querystring, { style: "form", explode: false });
  return described;
};

function toOperationId(method: string, url: string): string {
  const words = url.replace(/[^A-Za-z0-9]+(.)?/g, (_, next: string = "") => next.toUpperCase());
  return `${method.toLowerCase()}${words}`;
}

function describeResponses(route: RouteOptions): Record<string, unknown> {
  const { config = {}, schema = {} } = route;
  const own = Object.entries(isObject(schema.response) ? schema.response : {}).map(
    ([status, body]) => [status, describeResponse(status, body)] as const,
  );
  // The platform's own paths answer with the platform's own errors, which their schemas name.
  if (config.errorForm !== undefined)
    return { ...Object.fromEntries(own), default: z.null().describe("Any other error") };
  const content = { "application/problem+json": { schema: Problem } };
  const refused = refusedStatuses(route).map(
    (status) => [status, { description: wordStatus(status), content }] as const,
  );
  const rest = { description: "Any other error", content };
  return Object.fromEntries([...own, ...refused, ["default", rest]]);
}

function describeResponse(status: string, body: unknown): unknown {
  const description = wordStatus(status);
  if (status === "204") return z.null().describe(description);
  if (body instanceof z.ZodType) return { description, content: { "application/json": { schema: body } } };
  return { description, ...(isObject(body) ? body : {}) };
}

function refusedStatuses({ config = {}, schema = {} }: RouteOptions): string[] {
  const isChecked = [schema.querystring, schema.body, schema.params, schema.headers].some(Boolean);
  return [
    ...(config.access === "public" ? [] : ["401", "403"]),
    "429",
    ...(schema.params === undefined ? [] : ["404"]),
    ...(isChecked ? ["400"] : []),
    ...(schema.body === undefined ? [] : ["413", "415"]),
    ...(config.refuses ?? []).map(String),
  ];
}

interface Operation {
  readonly requestBody?: {
    required: boolean;
    readonly content: Readonly<Record<string, { readonly schema?: { readonly anyOf?: readonly object[] } }>>;
  };
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

/** Corrects what the packages cannot: removes unused components, and makes a body that may be null optional. */
const finish: SwaggerTransformObject = (given) => {
  const { paths, components, ...rest } = addComponents(given) as unknown as Document;
  const text = JSON.stringify(paths);
  const used = Object.entries(components.schemas).filter(
    // Every named schema comes twice: as it is answered, and as `...Input`.
    ([name]) => !name.endsWith("Input") || text.includes(`"#/components/schemas/${name}"`),
  );
  for (const operations of Object.values(paths))
    for (const { requestBody } of Object.values(operations))
      if (requestBody !== undefined && isNullable(requestBody)) requestBody.required = false;
  return { ...rest, paths, components: { ...components, schemas: Object.fromEntries(used) } };
};

function isNullable({ content }: NonNullable<Operation["requestBody"]>): boolean {
  const options = Object.values(content).flatMap(({ schema }) => schema?.anyOf ?? []);
  return options.some((option) => "type" in option && option.type === "null");
}

function wordStatus(status: string): string {
  return STATUSES[status] ?? "Refused";
}

const STATUSES: Readonly<Record<string, string>> = {
  "200": "The answer",
  "201": "Created",
  "202": "The request was not carried out. The status block names the reason",
  "204": "Done",
  "400": "The request breaks rules. The answer names all of them",
  "401": "The key is missing or not valid",
  "403": "The key lacks the scope or the zone",
  "404": "The resource does not exist, or the key may not see it",
  "409": "The state of the resource does not allow this action",
  "413": "The body is too large",
  "415": "The media type of the body is not supported",
  "422": "Each value is allowed, but the combination is not",
  "429": "Too many requests",
  "503": "The service is too busy, or the answer would take too long",
};
