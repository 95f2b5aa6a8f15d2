/** The operations on coverage. */

import { z } from "zod";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { listKnownZones, readCoverageDays } from "#db/proof/coverage-report.ts";
import { readHourPasses, readRuleCells } from "#db/proof/rule-cells.ts";
import { ServiceError } from "#lib/errors.ts";
import { many, showTime } from "#lib/format.ts";
import { startOfHour } from "#model/horizon.ts";
import {
  IsoTime,
  lineOf,
  Moment,
  Name,
  notFound,
  Time,
  toIso,
  toIsoOrNull,
  visibleZones,
  ZoneId,
  ZoneNumber,
} from "#operations/fields.ts";
import { defineChange, defineQuery } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { DAYS_QUERY, readDays } from "#operations/span.ts";
import { UNPREVENTABLE } from "#proof/rules/judge-hour.ts";
import { showIds } from "#proof/verify/check.ts";
import { listCoverage } from "./hours.ts";
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

const MAX_DAYS = 4_000;

const CoverageDay = z
  .object({
    zoneId: z.number().int(),
    day: Name.describe("The UTC day: 2026-11-21."),
    sealed: z.number().int().describe("Number of hours."),
    open: z.number().int(),
    gap: z.number().int(),
    unwatched: z.number().int(),
    imported: z.number().int().describe("Hours with imported events, which nothing proves to be complete."),
    stored: z.number().describe("Stored events."),
  })
  .meta({ id: "CoverageDay" });

const countDays = defineQuery({
  name: "coverage.days",
  summary: "Count hours by state for each day",
  description: `At most ${MAX_DAYS} days. Days without a recorded hour are left out.`,
  http: ["GET", "/api/v1/coverage/days"],
  tag: "Coverage",
  scope: "read",
  refuses: [422],
  input: z.strictObject(DAYS_QUERY),
  output: z.object({ from: IsoTime, to: IsoTime, items: z.array(CoverageDay) }),
  run: async ({ db, now, caller }, { zone, ...asked }) => {
    const span = readDays(asked, { nowMs: now, max: MAX_DAYS });
    const zoneIds = visibleZones(caller, zone);
    const items = await readCoverageDays(db, { zoneIds, unwatched: UNPREVENTABLE, ...span });
    return { from: toIso(span.fromMs), to: toIso(span.toMs), items };
  },
});

const MOST = 500;

const CoverageRules = z
  .object({
    startsAt: IsoTime,
    comparedAt: IsoTime.nullable().describe(
      "When the platform was asked last. Null if it was not asked yet.",
    ),
    items: z
      .array(
        z.object({
          ruleId: Name.describe("An empty text stands for events without a rule."),
          title: Name.nullable(),
          stored: z.number(),
          platform: z
            .number()
            .nullable()
            .describe("The platform's count at the last comparison. Null if it was not asked yet."),
          repairs: z.number().int().describe("How often the rule was read again because counts differed."),
        }),
      )
      .describe(`The rules whose counts differ first, then those with most events, at most ${MOST}.`),
    passes: z
      .array(
        z.object({
          pass: z.number().int(),
          pages: z
            .number()
            .int()
            .describe("Pages with an event of the hour that this pass stored as new or changed."),
          entries: z.number().int(),
          readAt: IsoTime,
        }),
      )
      .describe("The last passes over the list that showed events of the hour, newest first."),
  })
  .meta({ id: "CoverageRules" });

const compareRules = defineQuery({
  name: "coverage.rules",
  summary: "Compare the counts of one hour with the platform's, by rule, and list the passes that read it",
  http: ["GET", "/api/v1/coverage/rules"],
  tag: "Coverage",
  scope: "read",
  zone: "zone",
  input: z.strictObject({ zone: ZoneId, hour: Time.describe("A time in the hour.") }),
  output: CoverageRules,
  run: async ({ db }, { zone: zoneId, hour }) => {
    const startsAt = startOfHour(hour);
    const { comparedAt, cells } = await readRuleCells(db, { zoneId, startsAt, limit: MOST });
    const passes = await readHourPasses(db, { zoneId, startsAt });
    return {
      startsAt: toIso(startsAt),
      comparedAt: toIsoOrNull(comparedAt),
      items: cells.map((cell) => ({ ...cell, title: ruleTitle(cell.ruleId) })),
      passes: passes.map((pass) => ({ ...pass, readAt: toIso(pass.readAt) })),
    };
  },
});

export const coverageOperations = [listCoverage, countDays, compareRules, withdraw] as const;
