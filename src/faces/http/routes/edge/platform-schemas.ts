import { z } from "zod";
import { MinimalError, ProblemDetails } from "#adapters/edge/contract/errors.ts";

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
