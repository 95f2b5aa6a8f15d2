import { z } from "zod";
import { listAlerts as readAlerts } from "#db/alerts/alert-reports.ts";
import { showAge, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { ALERT_SORTS, ALERT_STATES, ASKED_ALERT_STATES, UNRESOLVED_STATES } from "#model/kinds.ts";
import { oneOrMore, pageOf, pageQuery, toPage } from "#operations/fields.ts";
import { type Column, defineQuery } from "#operations/operation.ts";
import { ackAlert, actOnAlerts, markAlert, resolveAlert } from "./act-on-alerts.ts";
import { ALERT_FILTER, Alert, readAlertView, readFilter, toAlert } from "./alert.ts";
import { showContext } from "./alert-context.ts";
import { showAlert } from "./alert-detail.ts";

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
