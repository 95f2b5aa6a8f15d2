/** One route for each operation. */
import type { FastifyInstance, FastifyReply, FastifyRequest, RouteShorthandOptions } from "fastify";
import { z } from "zod";
import { isObject } from "#lib/json.ts";
import { known } from "#operations/fields.ts";
import { placeMembers } from "#operations/input-schema.ts";
import { LONG_MS, type Operation } from "#operations/operation.ts";
import { type PerformContext, perform } from "#operations/perform.ts";
import { findMistakes, Refusal } from "#operations/refusal.ts";
import { toShownError } from "./errors/send-problem.ts";

/** Everything that operations need of the service; the request adds its caller. */
export type OperationParts = Omit<PerformContext, "caller" | "sessionId" | "now" | "signal">;

/** Adds the route of each operation. */
export function addOperations(
  app: FastifyInstance,
  operations: readonly Operation[],
  parts: OperationParts,
): void {
  for (const operation of operations) addOperation(app, operation, parts);
}

/** The parts of a route that depend on its operation alone. */
interface Reading {
  readonly schema: NonNullable<RouteShorthandOptions["schema"]>;
  /** The defaults of a body that was left out. */
  readonly noBody: Readonly<Record<string, unknown>>;
  /** The rules between members. */
  readonly between: z.ZodType;
}

/** Made once per process, because zod compiles each schema anew, and all schemas take longer than the rest of a server. */
const readings = new WeakMap<Operation, Reading>();

function readingOf(operation: Operation): Reading {
  const known = readings.get(operation);
  if (known !== undefined) return known;
  const places = placeMembers(operation);
  const reading = {
    schema: describe(operation, places),
    noBody: z.strictObject(places.body).safeParse({}).data ?? {},
    between: z.unknown().check(...(operation.input.def.checks ?? [])),
  };
  readings.set(operation, reading);
  return reading;
}

function addOperation(app: FastifyInstance, operation: Operation, parts: OperationParts): void {
  const [method, url] = operation.http;
  const { schema, noBody, between } = readingOf(operation);
  app.route({
    method,
    url,
    config: {
      access: {
        scope: operation.scope,
        ...(operation.zone === undefined ? {} : { zone: operation.zone }),
        ...(operation.withKey === true ? { withKey: true } : {}),
      },
      ...(operation.refuses === undefined ? {} : { refuses: operation.refuses }),
      ...(operation.heavy === undefined ? {} : { heavy: operation.heavy }),
      ...(operation.takesBasic === true ? { takesBasic: true } : {}),
    },
    // The framework keeps what it makes of a schema in the schema's container.
    schema: { ...schema },
    ...(operation.changes && operation.isLong === true ? { handlerTimeout: LONG_MS } : {}),
    ...sayLastAnswer(app, operation, parts),
    handler: async (request, reply) => {
      const performing = {
        ...parts,
        caller: known(request.caller),
        sessionId: request.session?.id ?? null,
        now: parts.clock(),
        signal: clientGone(reply),
      };
      const input = { ...noBody, ...gather(request) };
      refuseTogether(between, input);
      const output = await perform(operation, performing, input);
      const location = operation.created?.(output) ?? null;
      if (location !== null) void reply.code(201).header("location", location);
      if (operation.goesOn === true) void reply.code(202);
      void reply.headers(operation.headers?.(output) ?? {});
      const form = acceptsOtherThanJson(request) ? (operation.render?.(output, input) ?? null) : null;
      if (operation.render !== undefined) void reply.header("vary", "accept");
      if (form !== null) return reply.type(form.type).serializer(String).send(form.body);
      return output === undefined ? reply.code(204).send() : reply.send(output);
    },
  });
}

/**
 * Checks the rules between members, because the schemas of a route check each member by itself.
 * @throws {Refusal} 422
 */
function refuseTogether(between: z.ZodType, input: unknown): void {
  const { error } = between.safeParse(input);
  if (error === undefined) return;
  const slugs = error.issues.flatMap((issue) =>
    issue.code === "custom" ? (issue.params?.["slug"] ?? []) : [],
  );
  throw new Refusal(422, { slug: slugs[0], mistakes: findMistakes(error, input) });
}

/** Returns false for our own clients, which send nothing but this. */
function acceptsOtherThanJson({ headers: { accept = "*/*" } }: FastifyRequest): boolean {
  return accept.split(",").some((type) => type.split(";")[0]?.trim() !== "application/json");
}

/** Adds to a failure what the service last answered. No other status than 503 says that a client should keep what it has. */
function sayLastAnswer(
  app: FastifyInstance,
  { sayLast }: Operation,
  { searching, clock }: OperationParts,
): Pick<RouteShorthandOptions, "errorHandler"> {
  if (sayLast === undefined) return {};
  return {
    errorHandler(thrown, request, reply) {
      const shown = toShownError(thrown);
      if ((shown.statusCode ?? 500) < 500) return app.errorHandler(thrown, request, reply);
      const about = shown instanceof Refusal ? shown : null;
      const last = sayLast({ searching, now: clock() }, request.query);
      const refusal = new Refusal(503, {
        detail: [about?.detail ?? "The service cannot answer at the moment.", last ?? []].flat().join(" "),
        ...(about?.slug === undefined ? {} : { slug: about.slug }),
        headers: { "retry-after": "60", ...about?.headers },
        cause: thrown,
      });
      return app.errorHandler(refusal, request, reply);
    },
  };
}

/** Returns the members of the input from the path, the query and the body. */
function gather({ params, query, body }: FastifyRequest): Record<string, unknown> {
  return Object.assign({}, ...[query, body, params].filter(isObject)) as Record<string, unknown>;
}

function describe(
  { tag, summary, description, output, example, created, goesOn, takesMore, render: renders }: Operation,
  { params, query, body }: ReturnType<typeof placeMembers>,
): NonNullable<RouteShorthandOptions["schema"]> {
  return {
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    ...(Object.keys(params).length === 0 ? {} : { params: z.object(params) }),
    ...(Object.keys(query).length === 0 ? {} : { querystring: z.strictObject(query) }),
    ...(Object.keys(body).length === 0
      ? {}
      : { body: toBody(takesMore === true ? z.object(body) : z.strictObject(body), example) }),
    response:
      output instanceof z.ZodVoid
        ? { 204: output }
        : renders !== undefined
          ? {
              200: {
                content: { "application/json": { schema: output }, "text/plain": { schema: z.string() } },
              },
            }
          : goesOn === true
            ? { 202: output }
            : { 200: output, ...(created === undefined ? {} : { 201: output }) },
  };
}

/** Returns the schema of the body. A body whose members are all optional is optional too. */
function toBody(members: z.ZodObject, example: Readonly<Record<string, unknown>> | undefined): z.ZodType {
  const body = members.safeParse({}).success ? members.nullish() : members;
  if (example === undefined) return body;
  const shown = Object.fromEntries(
    Object.entries(example).filter(([name]) => Object.hasOwn(members.shape, name)),
  );
  return body.meta({ examples: [shown] });
}

/** No client reads this status; proxies write it into their logs. */
const CLIENT_GONE = 499;

/**
 * Returns a signal that aborts if the client leaves before the answer is sent. The framework's own signal also aborts
 * when a request's body was read to its end.
 */
export function clientGone({ raw }: FastifyReply): AbortSignal {
  const gone = new AbortController();
  const leave = () => gone.abort(new Refusal(CLIENT_GONE, { detail: "The client closed the connection." }));
  if (raw.destroyed) leave();
  raw.once("close", leave);
  return gone.signal;
}
