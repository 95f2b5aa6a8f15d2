import { z } from "zod";
import { listKnownZones } from "#db/proof/coverage-report.ts";
import { ServiceError } from "#lib/errors.ts";
import { many, showTime } from "#lib/format.ts";
import { lineOf, Moment, Name, notFound, visibleZones, ZoneNumber } from "#operations/fields.ts";
import { defineChange } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { showIds } from "../verify/check.ts";
import { withdrawEvents } from "./withdraw-events.ts";

const MOST_IDS = 10_000;
const MOST_SHOWN = 100;

const Ids = z.array(Name).describe(`At most ${MOST_SHOWN}. Escape them.`);

const CoverageWithdrawal = z
  .object({
    events: z.number().int().describe("Events to remove, or that were removed."),
    records: z.number().int().nullable().describe("Records that were removed. Null if nothing was removed."),
    logIds: Ids,
    shown: Ids.describe("Named events that stay, because the platform shows them."),
    shownCount: z.number().int(),
    unknown: Ids.describe("Named events that are not stored in the span."),
    unknownCount: z.number().int(),
    isRemoved: z.boolean(),
  })
  .meta({ id: "CoverageWithdrawal" });

export const withdraw = defineChange({
  name: "coverage.withdraw",
  summary: "Remove stored events that the platform does not show",
  description:
    "For events that are not the zone's own. Longwatch asks the platform again and removes only events, with their records, that the platform does not show. The audit trail gets an entry, the counts follow, and the hours are proven anew.",
  http: ["POST", "/api/v1/coverage/withdrawals"],
  tag: "Coverage",
  scope: "admin",
  refuses: [409, 422, 503],
  isLong: true,
  asksPlatform: true,
  input: z.strictObject({
    zone: ZoneNumber.describe("Id of the shield zone."),
    from: Moment.meta({ time: true }).describe("A full hour."),
    to: Moment.meta({ time: true }).describe("A full hour of the same UTC day, or its end."),
    logIds: z
      .array(z.string().min(1).max(200))
      .min(1)
      .max(MOST_IDS)
      .optional()
      .meta({ flag: "id", lines: true })
      .describe("Ids of the events to remove, instead of every event that the platform does not show."),
    allUnshown: z
      .literal(true)
      .optional()
      .describe("Removes every event of the span that the platform does not show."),
    unchecked: z
      .boolean()
      .default(false)
      .describe("Also removes named events of hours that the platform has forgotten."),
    reason: lineOf(500).describe("The audit trail keeps it."),
    dryRun: z
      .boolean()
      .default(true)
      .meta({ flag: "yes" })
      .describe("By default, nothing is removed. The value false, or --yes, removes the events."),
  }),
  output: CoverageWithdrawal,
  example: {
    zone: 101,
    from: "2026-11-20T10:00:00Z",
    to: "2026-11-20T11:00:00Z",
    allUnshown: true,
    reason: "events of zone 102",
  },
  command: {
    examples: [
      'coverage withdraw --zone 101 --from 2026-11-20T10:00 --to 2026-11-20T11:00 --all-unshown --reason "events of zone 102"',
      'coverage withdraw --zone 101 --from 2026-11-20T10:00 --to 2026-11-20T11:00 --id 0a1b --id 2c3d --reason "ticket 4711" --yes',
      'coverage withdraw --zone 101 --from 2026-11-20 --to 2026-11-21 --id @ids.txt --unchecked --reason "ticket 4711"',
    ],
    help: `Removes stored events that are not the zone's own, such as events of another zone that the platform showed by mistake. The
command asks the platform again (search, counts, and the list of the day) and removes only events that the platform does
not show. Without --yes it only prints what it would remove. The records of the events are removed too. The audit trail
gets who, why and how many. The counts follow, and the hours are proven anew. "verify --ids" names such events; --id
@ids.txt takes them from a file with one id per line. An hour that the platform has forgotten cannot be checked: name the
ids and add --unchecked. Exit code 0; 2 if refused; 1 if the platform does not answer.`,
    say: ({ events, records, isRemoved, ...ids }, { input: { zone, from, to } }) =>
      [
        `zone ${zone}, ${showTime(from)} to ${showTime(to)} UTC: ${
          isRemoved
            ? `${many(events, "event")} and ${many(records ?? 0, "record")} removed`
            : `${many(events, "event")} that the platform does not show`
        }`,
        showIds("  ids:", ids.logIds, events),
        showIds("  not removed, because the platform shows them:", ids.shown, ids.shownCount),
        showIds("  not stored in this span:", ids.unknown, ids.unknownCount),
        isRemoved || events === 0 ? null : "Nothing was removed. Add --yes to remove these events.",
        "",
      ]
        .filter((line) => line !== null)
        .join("\n"),
  },
  run: async (changing, { zone: zoneId, logIds = null, allUnshown, unchecked, reason, dryRun, ...span }) => {
    if ((logIds === null) !== (allUnshown === true)) {
      const rule = "must be given, or allUnshown, but not both";
      throw new Refusal(400, { mistakes: [{ field: "logIds", rule }] });
    }
    visibleZones(changing.caller, zoneId);
    if ((await listKnownZones(changing.db, zoneId)).length === 0) throw notFound(`zone ${zoneId}`);
    const [from, to] = [Date.parse(span.from), Date.parse(span.to)];
    const wanted = { zoneId, from, to, logIds, isUnchecked: unchecked };
    const found = await withdrawEvents(changing, wanted, dryRun ? null : reason).catch(refuse);
    const { removed } = found;
    const output = {
      events: removed?.events ?? found.logIds.length,
      records: removed?.records ?? null,
      logIds: found.logIds.slice(0, MOST_SHOWN),
      shown: found.shown.slice(0, MOST_SHOWN),
      shownCount: found.shown.length,
      unknown: found.unknown.slice(0, MOST_SHOWN),
      unknownCount: found.unknown.length,
      isRemoved: removed !== null,
    };
    // `withdrawEvents` writes the entry in its own transaction, after the platform has answered.
    return { output, audit: null };
  },
});

/** @throws {Refusal} also for an answer of the platform that cannot be used. */
function refuse(thrown: unknown): never {
  if (!(thrown instanceof ServiceError) || thrown instanceof Refusal) throw thrown;
  const detail = `The platform's answer could not be used: ${thrown.code}. Nothing was removed.`;
  throw new Refusal(503, { slug: "platform-failed", detail, cause: thrown });
}
