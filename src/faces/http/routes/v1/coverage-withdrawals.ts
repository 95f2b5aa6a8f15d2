import type { FastifyInstance } from "fastify";
import type { ZodTypeProvider } from "fastify-type-provider-zod";
import { z } from "zod";
import { listKnownZones } from "#db/coverage/coverage-report.ts";
import { ServiceError } from "#lib/errors.ts";
import { actOf, lineOf, MAX_ZONE_ID, Moment, notFound, visibleZones } from "#operations/fields.ts";
import { Refusal } from "#operations/refusal.ts";
import { type Withdrawal, WithdrawalRefusedError } from "#operations/withdraw-events.ts";
import { clientGone } from "../edge/client-gone.ts";
import type { ApiDeps } from "./api-deps.ts";

const MOST_IDS = 10_000;
const MOST_SHOWN = 100;
/** The list of a large day takes minutes within the request budget. */
const LONGEST_MS = 600_000;

const WithdrawalBody = z
  .strictObject({
    zone: z.int().min(1).max(MAX_ZONE_ID),
    from: Moment.describe("A full hour."),
    to: Moment.describe("A full hour of the same UTC day, or its end."),
    logIds: z
      .array(z.string().min(1).max(200))
      .min(1)
      .max(MOST_IDS)
      .optional()
      .describe("The events. Exactly one of logIds and allUnshown must be given."),
    allUnshown: z
      .literal(true)
      .optional()
      .describe("Every event of the span that the platform does not show."),
    unchecked: z
      .boolean()
      .default(false)
      .describe("Also removes named events of hours that the platform has forgotten."),
    reason: lineOf(500).describe("The audit trail keeps it."),
    dryRun: z.boolean().default(true).describe("Only answers what would be removed."),
  })
  .refine(({ logIds, allUnshown }) => (logIds === undefined) === (allUnshown === true), {
    path: ["logIds"],
    error: "must be given, or allUnshown, but not both",
  })
  .meta({
    examples: [
      {
        zone: 101,
        from: "2026-11-20T10:00:00Z",
        to: "2026-11-20T11:00:00Z",
        allUnshown: true,
        reason: "events of zone 102",
      },
    ],
  });

const Ids = z.array(z.string()).describe(`At most ${MOST_SHOWN}. Escape them.`);

const CoverageWithdrawal = z
  .object({
    events: z.number().int().describe("Events to remove, or that were removed."),
    records: z.number().int().nullable().describe("Records that were removed. Null if nothing was removed."),
    logIds: Ids,
    shown: Ids.describe("Named events that stay, because the platform shows them."),
    unknown: Ids.describe("Named events that are not stored in the span."),
    isRemoved: z.boolean(),
  })
  .meta({ id: "CoverageWithdrawal" });

/** `POST /api/v1/coverage/withdrawals`: remove stored events that the platform does not show. */
export function addCoverageWithdrawals(app: FastifyInstance, { archive, acts }: ApiDeps): void {
  app.withTypeProvider<ZodTypeProvider>().post(
    "/api/v1/coverage/withdrawals",
    {
      config: { access: { scope: "admin" }, refuses: [409, 422, 503] },
      handlerTimeout: LONGEST_MS,
      schema: {
        tags: ["Coverage"],
        summary: "Remove stored events that the platform does not show",
        description:
          "For events that are not the zone's own. Longwatch asks the platform again and removes only events, with their records, that the platform does not show. The audit trail gets an entry, the counts follow, and the hours are proven anew.",
        body: WithdrawalBody,
        response: { 200: CoverageWithdrawal },
      },
    },
    async ({ body, caller }, reply) => {
      visibleZones(caller, body.zone);
      if ((await listKnownZones(archive, body.zone)).length === 0) throw notFound(`zone ${body.zone}`);
      const asked = {
        zoneId: body.zone,
        from: Date.parse(body.from),
        to: Date.parse(body.to),
        logIds: body.logIds ?? null,
        isUnchecked: body.unchecked,
      };
      const by = body.dryRun ? null : { actor: actOf(caller).actor, reason: body.reason };
      return toAnswer(await acts.withdrawEvents(asked, by, clientGone(reply)).catch(refuse));
    },
  );
}

/** @throws {Refusal} for an error of the act. */
function refuse(thrown: unknown): never {
  if (thrown instanceof WithdrawalRefusedError) {
    const { fault, message } = thrown;
    if (fault === null) throw new Refusal(409, { slug: "withdrawal-refused", detail: message });
    throw new Refusal(422, { slug: "invalid-span", mistakes: [fault] });
  }
  if (!(thrown instanceof ServiceError) || thrown instanceof Refusal) throw thrown;
  const detail = `The platform's answer could not be used: ${thrown.code}. Nothing was removed.`;
  throw new Refusal(503, { slug: "platform-failed", detail, cause: thrown });
}

function toAnswer({ logIds, shown, unknown, removed }: Withdrawal): z.infer<typeof CoverageWithdrawal> {
  return {
    events: removed?.events ?? logIds.length,
    records: removed?.records ?? null,
    logIds: logIds.slice(0, MOST_SHOWN),
    shown: shown.slice(0, MOST_SHOWN),
    unknown: unknown.slice(0, MOST_SHOWN),
    isRemoved: removed !== null,
  };
}
