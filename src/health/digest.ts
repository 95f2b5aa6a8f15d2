/** The weekly digest. */
import { z } from "zod";
import { describeWeek, lastWeek, toRulePage, type Week } from "#alerts/rules/message/weekly-message.ts";
import { maskText } from "#archive/rules/mask.ts";
import { countAlerts, countMarks, listFewAddresses, listSilentRules } from "#db/alerts/alert-week.ts";
import { pageSilences } from "#db/alerts/silences.ts";
import { listExclusions, listReviewPlans } from "#db/detection/exclusions.ts";
import { readChangedRules } from "#db/detection/rule-changes.ts";
import { listApiKeys } from "#db/people/api-keys.ts";
import { readOldestRows } from "#db/people/retention.ts";
import { readCoverageDays } from "#db/proof/coverage-report.ts";
import { listEnding, OPSGENIE_ENDS } from "#delivery/receivers/channels/registry.ts";
import { many, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS, HOUR_MS } from "#lib/units.ts";
import { startOfHour, toDay } from "#model/horizon.ts";
import { findDrift } from "#model/review.ts";
import { type DigestLine, digestLine, type WeekFigures, weekFigures } from "#model/weekly-digest.ts";
import { Name } from "#operations/fields.ts";
import { defineQuery, type QueryContext } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import type { ServiceView } from "#operations/service-life.ts";
import { UNPREVENTABLE } from "#proof/rules/judge-hour.ts";
import { readAttention } from "./service/attention.ts";
import { readStorage } from "./service/settings.ts";
import { readVisibleZones } from "./service/zones.ts";

const RULE = "must be a day (2026-11-16) of a week that is over";

export const showDigest = defineQuery({
  name: "digest.show",
  summary: "Show the digest of a week",
  description:
    "What was proven, what changed, how alerts were handled, and what will need a hand. A week lasts from Monday to Monday, UTC. Holds no addresses.",
  http: ["GET", "/api/v1/digest"],
  tag: "Service",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    week: z.iso.date(RULE).optional().describe("A day of the week. Default: the last week that is over."),
  }),
  output: weekFigures
    .extend({
      rows: z.array(z.object({ label: Name, lines: z.array(digestLine) })).describe("The same in words."),
    })
    .meta({ id: "Digest" }),
  command: {
    name: "",
    examples: ["digest", "digest --week 2026-11-16", "digest --json"],
    help: "The channels that the configuration file names under digest get the same on Mondays (docs/routing.md).",
    say: ({ from, to, rows }) => {
      const lines = rows.flatMap(({ label, lines }) =>
        lines.map(({ text }, index) => `${(index === 0 ? label : "").padEnd(14)}${toLine(text, 500)}\n`),
      );
      return [`Week of ${from}, until ${to} 00:00 UTC\n`, ...lines].join("");
    },
  },
  run: async (asked, { week }) => {
    const span = lastWeek(week === undefined ? asked.now : Date.parse(week) + 7 * DAY_MS);
    if (span.toMs > asked.now || span.fromMs < 0)
      throw new Refusal(422, { mistakes: [{ field: "week", value: week ?? "", rule: RULE }] });
    const figures = await readWeek(asked, span);
    return { ...figures, rows: describeWeek(figures, asked.zones()) };
  },
});

const CHANGED_RULES = 5;
const CHANGED_ZONES = 5;
const LISTED_RULES = 5;
/** No list of silences, keys or exclusions is longer in practice. */
const MOST = 1_000;
/** The next digest comes within this time. */
const SOON_MS = 8 * DAY_MS;
/** Half a year before Opsgenie ends, its channels are named. */
const ENDING_MS = 182 * DAY_MS;
const FEWEST_DISK_DAYS = 30;

interface WeekAsked extends Pick<QueryContext, "db" | "now" | "caller"> {
  readonly service: Pick<ServiceView, "alerting" | "pollEveryMs" | "configuredChannels" | "readDisk">;
}

/** Returns the figures of a week that is over, for the zones of the caller. No text of it holds an address. */
export async function readWeek(asked: WeekAsked, { fromMs, toMs }: Week): Promise<WeekFigures> {
  const { db, caller } = asked;
  const span = { zoneIds: caller.zoneIds, fromMs, toMs };
  const beforeMs = 2 * fromMs - toMs;
  const seen = await readVisibleZones(db, span.zoneIds);
  const compared = seen.filter(({ firstHour }) => firstHour <= beforeMs).map(({ zoneId }) => zoneId);
  const days = await readCoverageDays(db, { ...span, fromMs: beforeMs, unwatched: UNPREVENTABLE });
  const { before = [], within = [] } = Object.groupBy(days, ({ day }) =>
    day < toDay(fromMs) ? "before" : "within",
  );
  const sum = (of: typeof days, name: "sealed" | "gap" | "unwatched" | "imported" | "stored") =>
    of.reduce((all, day) => all + day[name], 0);
  const passed = seen
    .map(({ firstHour }) => Math.max(0, toMs - Math.max(fromMs, startOfHour(firstHour))) / HOUR_MS)
    .reduce((all, hours) => all + hours, 0);
  const [sealed, gap] = [sum(within, "sealed"), sum(within, "gap")];
  const unwatched = sum(within, "unwatched") + sum(within, "imported");
  const storage = span.zoneIds === null ? await readRoom(asked) : null;
  const changed = await readChangedRules(db, { ...span, zoneIds: compared, limit: CHANGED_RULES });
  const changedZones = seen.map(({ zoneId }) => {
    const of = (list: typeof days) => list.filter((day) => day.zoneId === zoneId);
    const hoursBefore = of(before).reduce(
      (all, { sealed, open, gap, imported }) => all + sealed + open + gap + imported,
      0,
    );
    return { zoneId, total: sum(of(within), "stored"), before: sum(of(before), "stored"), hoursBefore };
  });
  // A week that is known in part counts as if the rest had been like it.
  const changeOf = ({ total, before: known, hoursBefore }: (typeof changedZones)[number]) =>
    hoursBefore === 0 ? 0 : Math.abs(total - (known * (toMs - fromMs)) / HOUR_MS / hoursBefore);
  const few = await listFewAddresses(db, span, LISTED_RULES);
  const silent = await listSilentRules(db, span, LISTED_RULES);
  const hide = <Rule extends { readonly ruleId: string }>(rule: Rule) => ({
    ...rule,
    ruleId: maskText(rule.ruleId),
  });
  return {
    from: toDay(fromMs),
    to: toDay(toMs),
    // An hour without a row is one that no route has read.
    hours: { passed, sealed, open: passed - sealed - gap - unwatched, gap, unwatched },
    events: {
      total: sum(within, "stored"),
      before: seen.some(({ firstHour }) => firstHour < fromMs) ? sum(before, "stored") : null,
    },
    changedZones: changedZones
      .filter(({ total, before }) => total + before > 0)
      .toSorted((a, b) => changeOf(b) - changeOf(a))
      .slice(0, CHANGED_ZONES),
    changedRules: changed.map(hide),
    silentRules: silent.map(hide),
    alerts: await countAlerts(db, span),
    marks: await countMarks(db, span),
    fewAddresses: few.map(hide),
    storage,
    hands: (await listHands(asked, fromMs, storage)).map(({ text, page }) => ({
      text: maskText(text),
      page,
    })),
  };
}

async function readRoom(asked: WeekAsked): Promise<NonNullable<WeekFigures["storage"]>> {
  const { event } = await readOldestRows(asked.db);
  const { dayBytes, freeBytes, daysLeft } = await readStorage(asked);
  const daysKept = event === null ? 0 : Math.ceil((asked.now - event) / DAY_MS);
  return { daysKept, dayBytes: dayBytes ?? 0, freeBytes, daysLeft };
}

const PAGES: Readonly<Record<string, string>> = {
  channel: "/operations",
  "given-up": "/operations",
  "self-alert": "/alerts?kind=self",
  "near-loss": "/coverage",
  gap: "/coverage",
};

/** Returns what a person should do before the next digest. */
async function listHands(
  asked: WeekAsked,
  fromMs: number,
  storage: WeekFigures["storage"],
): Promise<DigestLine[]> {
  const { db, now, caller, service } = asked;
  const { zoneIds, scopes } = caller;
  const hands: DigestLine[] = [];
  const add = (text: string, page: string | null = null) => void hands.push({ text, page });
  const isSoon = (at: number) => at > now && at <= now + SOON_MS;
  for (const { kind, text } of await readAttention(asked, await readVisibleZones(db, zoneIds)))
    add(text, PAGES[kind]);
  const left = storage?.daysLeft ?? FEWEST_DISK_DAYS;
  if (left < FEWEST_DISK_DAYS) add(`The disk has room for ${many(left, "day")} of events`);
  // Names of channels and keys are for those who may see the service as a whole.
  if (zoneIds === null && Date.parse(OPSGENIE_ENDS) - now <= ENDING_MS)
    for (const name of listEnding(service.alerting().channels))
      add(
        `Channel ${name}: Opsgenie ends on ${OPSGENIE_ENDS}; move to jira-service-management`,
        "/operations",
      );
  const page = { beforeId: null, withDead: true, limit: MOST };
  for (const { name, expiresAt, revokedAt } of zoneIds === null && scopes.has("admin")
    ? await listApiKeys(db, page)
    : [])
    if (revokedAt === null && expiresAt !== null && isSoon(expiresAt.getTime()))
      add(`Key ${name} expires ${showTime(expiresAt.getTime())} UTC`, "/operations?tab=keys");
  const active = { zoneIds, states: ["active"], nowMs: now, beforeId: undefined, limit: MOST } as const;
  for (const { id, expiresAt } of await pageSilences(db, active))
    if (isSoon(expiresAt.getTime()))
      add(`Silence ${id} ends ${showTime(expiresAt.getTime())} UTC`, "/silences");
  for (const { id, zoneId, clause, followedAt } of await listExclusions(db, zoneIds, MOST))
    if (followedAt !== null && followedAt >= fromMs)
      add(
        `Zone ${zoneId}: exclusion ${id} was applied on ${toDay(followedAt)}; see who uses its path`,
        toRulePage(zoneId, clause.ruleIds[0] ?? ""),
      );
  for (const { zoneId, name, plan, watch } of await listReviewPlans(db, zoneIds)) {
    const drift = findDrift(plan, watch);
    const [first] = drift;
    if (first === undefined) continue;
    const others =
      drift.length === 1
        ? ""
        : `; ${many(drift.length - 1, "other rule differs", "other rules differ")}, too`;
    add(
      `Zone ${zoneId}: rule ${toLine(first.rule, 60)} ${first.blocks ? "blocks" : "logs"} since ${toDay(first.since)}, against the plan "${toLine(name, 80)}"${others}`,
      `/review?zone=${zoneId}`,
    );
  }
  return hands;
}
