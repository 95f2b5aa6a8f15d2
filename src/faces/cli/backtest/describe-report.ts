/** The report of a backtest as text and as JSON. */

import type { BacktestAlert, BacktestReport } from "#detection/rules/backtest/backtest.ts";
import { FLOOR } from "#detection/rules/detection-settings.ts";
import { formatDecimal, formatWhole, many, showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { ENDINGS } from "#model/words.ts";
import type { EventsReport } from "./replay-events.ts";

const SHOWN = 20;
const MAX_SERIES_CHARS = 48;

interface Judged {
  readonly z: number;
  readonly floor: number;
}

/** Returns the summary and the strongest alerts as text. */
export function describeReport(report: BacktestReport, { z, floor }: Judged): string {
  const { series, seriesDays, rows, events, alerts, alertMinutes, alertsPerSeriesDay, bySeverity } = report;
  const span = `${showTime(report.fromMinute * MINUTE_MS)} to ${showTime(report.toMinute * MINUTE_MS)} UTC`;
  const facts: [string, string][] = [
    ["span", span],
    ["series", `${formatWhole(series)}, ${formatWhole(seriesDays)} series-days`],
    ["counts", `${many(events, "event")} in ${many(rows, "minute")}`],
    [
      "alerts",
      `${formatWhole(alerts.length)} at z ${z}${floor === FLOOR ? "" : `, floor ${floor}`}, ${alertsPerSeriesDay.toFixed(4)} per series-day`,
    ],
    ["", `${bySeverity.critical} critical, ${bySeverity.error} error, ${bySeverity.warning} warning`],
    ["", `${report.newRules} for new rules`],
    ["in alert", many(alertMinutes, "minute")],
  ];
  const summary = facts.map(([name, fact]) => `${name.padEnd(10)}${fact}\n`).join("");
  const strongest = alerts.toSorted((a, b) => b.episode.score - a.episode.score).slice(0, SHOWN);
  if (strongest.length === 0) return summary;
  const more = alerts.length > SHOWN ? `the ${SHOWN} strongest` : "alerts, the strongest first";
  return `${summary}\n${more}:\n${strongest.map((alert) => `  ${describeAlert(alert)}\n`).join("")}`;
}

function describeAlert({ series, fromMinute, toMinute, isOpen, episode }: BacktestAlert): string {
  const lasted = `${many(toMinute - fromMinute, "minute")}${isOpen ? ", still open" : ""}`;
  const severity = episode.kind === "new-rule" ? "new rule" : episode.severity;
  const compared = `${formatWhole(episode.peak)} in ${episode.windowMinutes} minutes against usual ${formatDecimal(episode.usual)}`;
  // An alert fires at the end of the minute that reached the threshold, or in the service up to a minute earlier.
  return `${showTime((fromMinute + 1) * MINUTE_MS)}  ${severity.padEnd(8)}  ${shortenText(series, MAX_SERIES_CHARS)}  ${compared}, ${lasted}`;
}

/** Returns the report as JSON. */
export function toReportJson(report: BacktestReport, { z, floor }: Judged) {
  const { fromMinute, toMinute, alerts, ...facts } = report;
  return {
    z,
    floor,
    from: isoOf(fromMinute),
    to: isoOf(toMinute),
    ...facts,
    alerts: alerts.map(({ series, fromMinute: from, toMinute: to, isOpen, episode }) => ({
      series,
      from: isoOf(from),
      to: isoOf(to),
      isOpen,
      severity: episode.severity,
      kind: episode.kind,
      windowMinutes: episode.windowMinutes,
      peak: episode.peak,
      usual: episode.usual,
      threshold: episode.threshold,
      score: episode.score,
    })),
  };
}

function isoOf(minute: number): string {
  return new Date(minute * MINUTE_MS).toISOString();
}

const MAX_NAME_CHARS = 48;
const NAMED = 3;
const PAGING = new Set(["error", "critical"]);

/** Returns the summary and the newest messages that page as text. */
export function describeEvents({ zones, zoneDays, rows, messages }: EventsReport): string {
  const alerts = messages.filter(({ reason }) => reason === "first");
  const incidents = alerts.filter(({ subject }) => subject === "incident").length;
  const paging = messages.filter(
    ({ severity, reason }) => PAGING.has(severity) && !ENDINGS.some((end) => end === reason),
  );
  const facts: [string, string][] = [
    ["zones", `${formatWhole(zones)}, ${zoneDays.toFixed(1)} zone-days`],
    ["events", formatWhole(rows)],
    ["alerts", `${many(incidents, "incident")}, ${many(alerts.length - incidents, "rule")} alone`],
    ["messages", formatWhole(messages.length)],
    ["paging", `${formatWhole(paging.length)} of severity error and above`],
  ];
  const summary = facts.map(([name, fact]) => `${name.padEnd(10)}${fact}\n`).join("");
  if (paging.length === 0) return summary;
  const shown = paging.slice(-SHOWN).map((message) => `  ${describeMessage(message)}\n`);
  return `${summary}\nthe newest that page:\n${shown.join("")}`;
}

function describeMessage({
  zone,
  at,
  incident,
  reason,
  severity,
  attackers,
  rules,
}: EventsReport["messages"][number]) {
  const names = attackers.length > 0 ? attackers.map(({ kind, key }) => `${kind} ${key}`) : rules;
  const named = names.slice(0, NAMED).map((name) => shortenText(name, MAX_NAME_CHARS));
  const rest = names.length - named.length;
  const more = rest > 0 ? ` and ${formatWhole(rest)} more` : "";
  const where = `${shortenText(zone, MAX_NAME_CHARS)}/${incident}`;
  return `${showTime(at * MINUTE_MS)}  ${severity.padEnd(8)}  ${reason.padEnd(8)}  ${where}  ${named.join(", ")}${more}`;
}

export function toEventsJson({ messages, ...facts }: EventsReport, policy: { z: number; floor: number }) {
  return {
    ...policy,
    ...facts,
    messages: messages.map(({ at, ...message }) => ({
      ...message,
      at: new Date(at * MINUTE_MS).toISOString(),
    })),
  };
}
