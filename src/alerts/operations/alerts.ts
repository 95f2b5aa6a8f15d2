import { z } from "zod";
import { parseDetails } from "#alerts/rules/alert-record.ts";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import { toSilencedAlert, toSilences, wouldMute } from "#alerts/rules/silence.ts";
import { describeSilences, Silence } from "#alerts/silences/silence.ts";
import { clausesOf } from "#archive/rules/query/custom-conditions.ts";
import { listEpisodes, listRisenRules, listAlerts as readAlerts } from "#db/alerts/alert-reports.ts";
import { readMark } from "#db/alerts/marks.ts";
import { pageSilences } from "#db/alerts/silences.ts";
import { collectEvidence } from "#db/detection/spike-evidence.ts";
import type { SpikeEvidence } from "#db/schema/spikes.ts";
import { showAge, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import {
  ALERT_SORTS,
  ALERT_STATES,
  ASKED_ALERT_STATES,
  MARKS,
  SILENCE_STATES,
  UNRESOLVED_STATES,
} from "#model/kinds.ts";
import {
  IsoTime,
  Name,
  oneOrMore,
  pageOf,
  pageQuery,
  RowId,
  toIso,
  toIsoOrNull,
  toPage,
} from "#operations/fields.ts";
import { type Column, defineQuery } from "#operations/operation.ts";
import { ackAlert, actOnAlerts, markAlert, resolveAlert } from "./act-on-alerts.ts";
import { ALERT_FILTER, Alert, findAlert, readAlertView, readFilter, toAlert } from "./alert.ts";
import { showAlert, Top, TopValues } from "./alert-detail.ts";

/** An alert can last for days; what it was about shows in its first hours. */
const MAX_DURING_MS = 6 * HOUR_MS;
/** A spike starts up to some minutes before its detection. These minutes are not in the hour that it is compared with. */
const LEAD_MS = 5 * MINUTE_MS;
const MAX_EPISODES = 50;
const MAX_RISEN = 20;
const MAX_SILENCES = 500;
const NAMES = {
  ip: "ips",
  asn: "asns",
  country: "countries",
  path: "paths",
  ua: "userAgents",
  ja4: "ja4s",
  action: "actions",
} as const;

const Evidence = z.object({
  from: IsoTime,
  to: IsoTime,
  total: z.number(),
  sampled: z.number().describe("The newest events, over which the lists are counted."),
  top: TopValues.extend({ actions: Top }).describe(
    "The five most frequent values of each list. The values are text from requests. Escape them.",
  ),
});

export const AlertContext = z
  .object({
    during: Evidence.nullable().describe(
      "The whole minutes from the beginning of the window that fired to the end of the alert, at most six hours. Null if the alert is about no single rule, or its events are no longer kept.",
    ),
    before: Evidence.nullable().describe("The hour before the alert."),
    risen: z
      .array(
        z.object({
          zoneId: z.number().int(),
          ruleId: Name,
          ruleTitle: Name.nullable(),
          during: z.number(),
          before: z.number().describe("Events in the time of the same length before the alert."),
        }),
      )
      .describe("Other rules and zones with at least ten events and more than twice as many as before."),
    episodes: z
      .array(
        z.object({
          alertId: z.number().int(),
          firedAt: IsoTime,
          resolvedAt: IsoTime.nullable(),
          state: Name,
          severity: Name.nullable(),
          mark: z.enum(MARKS).nullable().describe("How a person marked it."),
          peak: z.number().nullable(),
        }),
      )
      .describe("Other alerts about the same rule, newest first."),
    mark: z.enum(MARKS).nullable().describe("How a person marked the alert."),
    silences: z
      .array(Silence)
      .describe("Silences that match the alert, those that are over as well, newest first."),
  })
  .meta({ id: "AlertContext" });
export type AlertContext = z.infer<typeof AlertContext>;

const showContext = defineQuery({
  name: "alerts.context",
  summary: "Show what changed with an alert, what else rose, and what came before",
  http: ["GET", "/api/v1/alerts/:id/context"],
  tag: "Alerts",
  scope: "read",
  heavy: "read",
  input: z.strictObject({ id: RowId }),
  output: AlertContext,
  run: async ({ db, caller, now }, { id }) => {
    const row = await findAlert(db, caller, id);
    const { zoneId, ruleId } = row;
    const message = parseDetails(row.details).message;
    const start = message?.startedAt ?? row.firedAt.getTime();
    // The alert fired when its window ended.
    const fromMs = start - (start % MINUTE_MS) - (message?.windowMinutes ?? 0) * MINUTE_MS;
    const ended = Math.min(row.resolvedAt?.getTime() ?? now, fromMs + MAX_DURING_MS);
    // Whole minutes: the counts by minute add up to the same total.
    const toMs = Math.max(ended - (ended % MINUTE_MS), fromMs + MINUTE_MS);
    const series = zoneId === null || ruleId === null ? null : { zoneId, ruleId };
    const clauses = message?.condition === undefined ? {} : { clauses: clausesOf(message.condition) };
    const readEvidence = async (from: number, to: number) => {
      if (series === null) return null;
      const scope = { ...series, ...clauses, fromMs: from, toMs: to, sinceMs: from, sparkline: [] };
      return toEvidence(await collectEvidence(db, scope));
    };
    const span = { zoneIds: caller.zoneIds, fromMs, toMs, limit: MAX_RISEN };
    const risen = await listRisenRules(db, { ...span, except: series ?? { zoneId: 0, ruleId: "" } });
    const episodes =
      series === null ? [] : await listEpisodes(db, { ...series, exceptId: row.id, limit: MAX_EPISODES });
    const silences = await pageSilences(db, {
      zoneIds: caller.zoneIds,
      states: SILENCE_STATES,
      nowMs: now,
      beforeId: undefined,
      limit: MAX_SILENCES,
    });
    const alert = toSilencedAlert(row);
    const matching = new Set(
      toSilences(silences)
        .filter(({ matchers }) => wouldMute(matchers, alert))
        .map(({ id }) => id),
    );
    const shown = await describeSilences(
      { db, caller, now },
      silences.filter(({ id }) => matching.has(id)),
    );
    return {
      mark: await readMark(db, row),
      during: await readEvidence(fromMs, toMs),
      before: await readEvidence(fromMs - LEAD_MS - HOUR_MS, fromMs - LEAD_MS),
      risen: risen.map((one) => ({ ...one, ruleTitle: ruleTitle(one.ruleId) })),
      episodes: episodes.map((one) => ({
        ...one,
        firedAt: toIso(one.firedAt),
        resolvedAt: toIsoOrNull(one.resolvedAt),
      })),
      silences: shown,
    };
  },
});

function toEvidence({ from, to, total, sampled, top }: SpikeEvidence): z.infer<typeof Evidence> {
  const lists = Object.entries(NAMES).map(([dimension, name]) => [
    name,
    [...top[dimension as keyof typeof NAMES]],
  ]);
  return { from, to, total, sampled, top: Object.fromEntries(lists) as z.infer<typeof Evidence>["top"] };
}

const STYLES = { critical: "red", error: "red", warning: "yellow", info: "cyan" } as const;

/** The headline and the name are untrusted text. */
const COLUMNS: readonly Column<Alert>[] = [
  { head: "ALERT", get: ({ id }) => `#${id}` },
  { head: "SEVERITY", get: ({ severity }) => ({ text: severity, style: STYLES[severity] }) },
  {
    head: "STATE",
    get: (alert, { now }) => ({
      text: describeState(alert, now),
      style: alert.state === "firing" && alert.silence === null && alert.unsent === null ? "bold" : "dim",
    }),
  },
  { head: "AGE", get: ({ firedAt }, { now }) => showAge(now - Date.parse(firedAt)) },
  {
    head: "SINCE (UTC)",
    get: ({ firedAt }) => showTime(firedAt),
  },
  {
    head: "HEADLINE",
    get: ({ headline }) =>
      headline === null ? "(the stored message cannot be read)" : toLine(headline, 200),
  },
];

function describeState(alert: Alert, now: number): string {
  const { state, acknowledgedBy, assignedTo, quietSince, silence, incidentId, unsent } = alert;
  const by = state === "acknowledged" && acknowledgedBy !== null ? ` by ${toLine(acknowledgedBy, 40)}` : "";
  const has = assignedTo === null ? "" : `, assigned to ${toLine(assignedTo, 40)}`;
  const quiet = quietSince === null ? "" : `, quiet ${showAge(now - Date.parse(quietSince))}`;
  const muted = silence === null ? "" : `, silenced until ${showTime(silence.expiresAt)}`;
  const part = incidentId === null ? "" : `, part of #${incidentId}`;
  const isListed = unsent === "few-addresses" || unsent === "first-day";
  const listed = isListed ? ", only listed" : unsent === "inhibition" ? ", inhibited" : "";
  return `${state}${by}${has}${quiet}${muted}${part}${listed}`;
}

const listAlerts = defineQuery({
  name: "alerts.list",
  summary: "List alerts, newest or worst first",
  http: ["GET", "/api/v1/alerts"],
  tag: "Alerts",
  scope: "read",
  refuses: [422],
  input: z.strictObject({
    state: oneOrMore(ASKED_ALERT_STATES)
      .optional()
      .meta({ flagDefault: UNRESOLVED_STATES.join() })
      .describe("Alerts in these states."),
    ...ALERT_FILTER,
    sort: z
      .enum(ALERT_SORTS)
      .default("newest")
      .meta({ flagDefault: "worst" })
      .describe(
        "worst: firing alerts first, then acknowledged ones, each by severity, and the newest of one severity first. newest: the order does not change while you read pages.",
      ),
    ...pageQuery({ fallback: 50, most: 200 }),
  }),
  output: pageOf(Alert),
  command: {
    examples: [
      "alerts list",
      "alerts list --state all --since -24h",
      "alerts list --zone 101 --rule '942*' --json",
    ],
    limit: 100,
    columns: COLUMNS,
    empty: "No alert matches. Without --state, resolved alerts are left out.",
  },
  run: async (asked, { state, sort, limit, after, ...filter }) => {
    const { db, cursors, now } = asked;
    const { zone, rule, severity, kind, incident, since, until } = filter;
    const list = `alerts:${JSON.stringify([state, zone, rule, severity, kind, incident, since, until, sort])}`;
    const selected = await readFilter(asked, filter);
    const last = cursors.readAfter(list, after);
    const rows = await readAlerts(db, {
      ...selected,
      states: state && ALERT_STATES.filter((one) => state.includes(one) || state.includes("all")),
      sort,
      after: last === null ? undefined : { id: Number(last[0]), urgency: Number(last[1]) },
      limit: limit + 1,
    });
    const view = await readAlertView(db, now);
    return toPage(
      rows,
      limit,
      (row) => toAlert(row, view),
      ({ id, urgency }) => cursors.sign(list, [id, urgency]),
    );
  },
});

export const alertOperations = [
  listAlerts,
  showAlert,
  showContext,
  ackAlert,
  resolveAlert,
  actOnAlerts,
  markAlert,
];
