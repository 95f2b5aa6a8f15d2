/** Adds the routes that answer as the platform does. */
import type { FastifyError, FastifyInstance } from "fastify";
import { z } from "zod";
import type { Queryable } from "#db/client.ts";
import { pageLiveApiKeys } from "#db/people/api-keys.ts";
import { isObject } from "#lib/json.ts";
import { maskAccessKey } from "#model/access-key.ts";
import { ApiKeyList, ApiKeyListQuery } from "#platform/contract/account.ts";
import { LegacyError } from "#platform/contract/errors.ts";
import { addJsonParser } from "../read-body.ts";
import { addExportEventLogs } from "./export-event-logs.ts";
import { addListEventLogs } from "./list-event-logs.ts";
import { forAll, ONLY_DOCUMENTED, PLATFORM_TAGS, type PlatformDeps, sendBareProblem } from "./platform.ts";
import { addRecommendRule, addRuleMetrics } from "./rules.ts";
import { addSearchEventLogs } from "./search-event-logs.ts";

/** Adds the platform's operations at the platform's paths. Bodies are read by the platform's rules. */
export function addPlatform(app: FastifyInstance, deps: PlatformDeps): void {
  addListApiKeys(app, deps.db);
  void app.register(async (scope) => {
    addJsonParser(scope);
    scope.setValidatorCompiler(ONLY_DOCUMENTED.validatorCompiler);
    scope.setSerializerCompiler(ONLY_DOCUMENTED.serializerCompiler);
    scope.setErrorHandler<FastifyError>((error, _request, reply) => {
      // An invalid media type is refused like any other unknown one.
      if (error.statusCode === 415) return sendBareProblem(reply, 415);
      throw error;
    });
    addSearchEventLogs(scope, deps);
    addExportEventLogs(scope, deps);
    addListEventLogs(scope, deps);
    addRuleMetrics(scope, deps);
    addRecommendRule(scope, deps);
  });
}

const MAX_PAGE = 2_147_483_647;
const MIN_PER_PAGE = 5;
const MAX_PER_PAGE = 1_000;

const schema = {
  tags: PLATFORM_TAGS,
  summary: "List the access keys of Longwatch, masked",
  querystring: ApiKeyListQuery,
  response: {
    200: ApiKeyList,
    400: LegacyError,
    ...forAll([401, 403, 429, 503], { "application/json": { schema: z.object({ Message: z.string() }) } }),
  },
};

/** Lists Longwatch's own keys in the platform's shape (platform API spec 4.1). The key texts are stored nowhere. */
function addListApiKeys(app: FastifyInstance, db: Queryable): void {
  const config = { access: { scope: "admin" }, errorForm: "message" } as const;
  app.get("/apikey", { ...ONLY_DOCUMENTED, config, schema }, async (request, reply) => {
    const query = isObject(request.query) ? request.query : {};
    const page = readInteger(query["page"], 1);
    const perPage = readInteger(query["perPage"], MAX_PER_PAGE);
    if (page === null || page < 1 || page > MAX_PAGE)
      return reply.code(400).send(invalid("page", query["page"], `1 to ${MAX_PAGE}`));
    if (perPage === null)
      return reply.code(400).send(invalid("perPage", query["perPage"], `${MIN_PER_PAGE} to ${MAX_PER_PAGE}`));
    // An out-of-range page is moved to the nearest bound, as the platform does.
    const limit = Math.min(Math.max(perPage, MIN_PER_PAGE), MAX_PER_PAGE);
    const { rows, total } = await pageLiveApiKeys(db, { offset: (page - 1) * limit, limit });
    return {
      Items: rows.map(({ id, keyId, roles }) => ({ Id: id, Key: maskAccessKey(keyId), Roles: roles })),
      CurrentPage: page,
      TotalItems: total,
      HasMoreItems: page * limit < total,
    };
  });
}

function readInteger(given: unknown, fallback: number): number | null {
  if (given === undefined) return fallback;
  return typeof given === "string" && /^-?\d{1,10}$/.test(given) ? Number(given) : null;
}

function invalid(field: string, given: unknown, range: string) {
  const value = String(given).slice(0, 40);
  const message = `The value '${value}' is not valid: ${field} must be ${range}.`;
  return { ErrorKey: "model.invalid", Field: field, Message: message };
}
