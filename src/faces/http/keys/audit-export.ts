import type { FastifyRequest } from "fastify";
import type { AuditEntry } from "#db/keys/audit-trail.ts";
import type { Clock } from "#lib/clock.ts";
import { createRateLimiter } from "#lib/rate-limiter.ts";
import { actorOf } from "#operations/caller.ts";
import { Refusal } from "#operations/refusal.ts";
import { describeExport, type ExportPlan } from "#operations/search/describe-export.ts";
import { aboutRequest, refuseSpent } from "../limits/limit-requests.ts";

/** Exports of one key per window. Each export adds an audit entry that is kept for good. */
const QUOTA = { quota: 300, windowMs: 60_000, maxKeys: 1_000 };

/** @throws {Refusal} 429 for too many exports of one key, 503 while the audit trail cannot be written */
export type AuditExport = (
  request: FastifyRequest,
  exported: { readonly zoneId: number; readonly plan: ExportPlan },
) => Promise<void>;

/** Writes the audit entry of an export before the first event is sent. */
export function createAuditExport(write: (entry: AuditEntry) => Promise<void>, clock: Clock): AuditExport {
  const limiter = createRateLimiter(QUOTA);
  return async (request, { zoneId, plan }) => {
    const { caller } = request;
    const taken = limiter.take(caller?.keyId ?? "", clock());
    refuseSpent(taken, `This key may make at most ${QUOTA.quota} exports a minute.`);
    const isMasked = caller?.masked ?? true;
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
  };
}
