/** What the platform's routes share: their answers, schemas and zones. */

import { STATUS_CODES } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { z } from "zod";
import type { Mistakes } from "#archive/rules/query/plan-search.ts";
import { describeExport, type ExportPlan } from "#archive/search/export-events.ts";
import { hasStoredEvents } from "#db/archive/archived-days.ts";
import type { AuditEntry } from "#db/people/audit-trail.ts";
import type { Clock } from "#lib/clock.ts";
import { isObject } from "#lib/json.ts";
import { createRateLimiter } from "#lib/rate-limiter.ts";
import { actorOf, maySeeZone } from "#operations/caller.ts";
import { Refusal } from "#operations/refusal.ts";
import type { ServiceView } from "#operations/service-life.ts";
import { MinimalError, ProblemDetails } from "#platform/contract/errors.ts";
import { PROBLEM_TYPE } from "../../errors/problem.ts";
import { wordError } from "../../errors/send-problem.ts";
import { aboutRequest, refuseSpent } from "../../limits/limit-requests.ts";
import type { OperationParts } from "../../operations.ts";

/** The outcome of a request for advice, or the reason why the platform was not asked. */
export type AskedAdvice =
  | { readonly kind: "answered"; readonly text: string }
  /** The stored key: the platform's own, or one of this service's in capitals. */
  | { readonly kind: "failed"; readonly errorKey: string }
  /** The budget of the hour is used up, a refusal is in force, or another process is asking. */
  | { readonly kind: "not-now" };

export type AskAdvice = (rule: { zoneId: number; ruleId: string }) => Promise<AskedAdvice>;

/** The parts of operations, and those of the platform's own routes. */
export interface PlatformDeps extends Pick<OperationParts, "clock" | "cursors" | "db" | "searching"> {
  readonly service: Pick<ServiceView, "retention" | "zoneIds">;
  readonly auditExport: AuditExport;
  /** Interval at which an export checks that its key is still valid. Default 10 s. */
  readonly checkKeyEveryMs?: number;
  /** Null if the platform may not be asked for a client. */
  readonly askAdvice: AskAdvice | null;
}

const JSON_TYPE = "application/json; charset=utf-8";
const MAX_SHOWN_CHARS = 80;

/** Sends JSON regardless of `Accept`, as the platform does. A string is sent as it is. */
export function sendJson(reply: FastifyReply, status: number, body: string | object): FastifyReply {
  return reply
    .code(status)
    .type(JSON_TYPE)
    .send(typeof body === "string" ? body : JSON.stringify(body));
}

/** Sends an error in the form of its route: bare problem details, or the status alone (platform API spec 2.13). */
export function sendBareProblem(reply: FastifyReply, status: number, detail?: string): FastifyReply {
  const title = STATUS_CODES[status] ?? "Error";
  const problem = { type: "", title, status, ...(detail === undefined ? {} : { detail }) };
  const { type, body } = wordError(reply.routeOptions.config.errorForm ?? "bare", problem);
  return reply.code(status).type(type).send(JSON.stringify(body));
}

/** Sends problem details with all mistakes by field, or the status alone if that is the route's form. */
export function sendMistakes(reply: FastifyReply, errors: Mistakes): FastifyReply {
  if (reply.routeOptions.config.errorForm === "status-code") return sendBareProblem(reply, 400);
  const type = "https://tools.ietf.org/html/rfc9110#section-15.5.1";
  const title = "One or more validation errors occurred.";
  return reply
    .code(400)
    .type(PROBLEM_TYPE)
    .send(JSON.stringify({ type, title, status: 400, detail: summarise(errors), errors }));
}

/** The text that clients show if they show only one. */
function summarise(errors: Mistakes): string {
  const all = Object.values(errors).flat();
  const more = all.length > 1 ? ` (and ${all.length - 1} more)` : "";
  return `${all[0] ?? ""}${more}`;
}

/** Returns a filled status block (platform API spec 2.5). */
export function failureBlock(statusCode: number, errorKey: string, message: string) {
  return { statusCode, success: false, message, errorKey };
}

/** Shortens a client's value so that an error can quote it. */
export function shown(text: string): string {
  return text.length > MAX_SHOWN_CHARS ? `${text.slice(0, MAX_SHOWN_CHARS)}...` : text;
}

/** The platform's schemas are only documentation. The handlers check and write bodies by the platform's rules. */
export const ONLY_DOCUMENTED = {
  validatorCompiler: () => (value: unknown) => ({ value }),
  serializerCompiler: () => (body: unknown) => JSON.stringify(body),
};

export const PLATFORM_TAGS = ["Archive (the platform's API)"];

export const ZONE_PARAM = { shieldZoneId: z.int32() };

export const PROBLEM = { "application/problem+json": { schema: ProblemDetails } };

/** Returns the same response for all these statuses. */
export function forAll<Content>(statuses: readonly number[], content: Content) {
  return Object.fromEntries(statuses.map((status) => [status, { content }]));
}

/** Responses of search and export, which fail as bare problem details (platform API spec 2.13). */
export function searchRefusals(failed: z.ZodType) {
  return { 202: failed, ...forAll([400, 401, 403, 413, 415, 429, 503], PROBLEM) };
}

/** Responses of the operations on one rule, which fail with the status alone (platform API spec 2.13). */
export function ruleRefusals(failed: z.ZodType) {
  const content = { "application/json": { schema: MinimalError } };
  return { 202: failed, ...forAll([400, 401, 403, 429, 503], content) };
}

const MAX_INT32 = 2_147_483_647;

export function readParam(request: FastifyRequest, name: string): string {
  const value = isObject(request.params) ? request.params[name] : undefined;
  return typeof value === "string" ? value : "";
}

/** Returns the zone of the path. If the path contains no 32-bit integer, answers and returns null. */
export function readZoneId(request: FastifyRequest, reply: FastifyReply): number | null {
  const text = readParam(request, "shieldZoneId");
  const id = /^-?\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
  if (Math.abs(id) <= MAX_INT32) return id;
  sendMistakes(reply, {
    shieldZoneId: [`The value '${shown(text)}' is not valid: shieldZoneId must be a 32-bit integer.`],
  });
  return null;
}

/** Returns whether the key may see the zone and the service copies it or has events of it. */
export async function isServedZone(
  { db, service }: Pick<PlatformDeps, "db" | "service">,
  { caller }: FastifyRequest,
  zoneId: number,
): Promise<boolean> {
  if (caller === null || !maySeeZone(caller, zoneId)) return false;
  return service.zoneIds.includes(zoneId) || hasStoredEvents(db, zoneId);
}

/** The answer is the same for a zone that is not watched and a zone that the key may not see. */
export function unknownZoneBlock() {
  return failureBlock(
    202,
    "not_found_or_unauthorised_access.shieldzone",
    "The Shield Zone was not found, or access to it is not authorised.",
  );
}

/** Exports of one key per window. Each export adds an audit entry that is kept for good. */
const QUOTA = { quota: 300, windowMs: 60_000, maxKeys: 1_000 };

/** @throws {Refusal} 429 for too many exports of one key, 503 while the audit trail cannot be written */
type AuditExport = (
  request: FastifyRequest,
  exported: { readonly zoneIds: readonly number[]; readonly plan: ExportPlan },
) => Promise<void>;

/** Writes the audit entry of an export before the first event is sent. */
export function createAuditExport(write: (entry: AuditEntry) => Promise<void>, clock: Clock): AuditExport {
  const limiter = createRateLimiter(QUOTA);
  return async (request, { zoneIds, plan }) => {
    const { caller } = request;
    const taken = limiter.take(caller?.keyId ?? "", clock());
    refuseSpent(taken, `This key may make at most ${QUOTA.quota} exports a minute.`);
    const isMasked = caller?.masked ?? true;
    for (const zoneId of zoneIds) {
      const { details, ...entry } = describeExport(actorOf(caller), zoneId, { plan, isMasked });
      await write({ ...entry, details: { ...details, ...aboutRequest(request).details } }).catch(
        (cause: unknown) => {
          throw new Refusal(503, {
            detail:
              "Longwatch cannot enter the export into the audit trail at the moment, so the export is refused. Try again later.",
            cause,
          });
        },
      );
    }
  };
}
