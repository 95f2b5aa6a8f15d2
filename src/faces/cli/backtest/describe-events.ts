import { shortenText } from "#lib/escape-text.ts";
import { formatWhole, many } from "#lib/format.ts";
import { showTime } from "#lib/show-time.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { EventsReport } from "./replay-events.ts";

const SHOWN = 20;
const MAX_KEY_CHARS = 48;
const PAGING = new Set(["error", "critical"]);

/** Returns the summary and the newest alerts that page as text. */
export function describeEvents({ zones, zoneDays, rows, alerts }: EventsReport): string {
  const rules = alerts.filter(({ kind }) => kind === "rule");
  const paging = alerts.filter(({ severity }) => PAGING.has(severity));
  const facts: [string, string][] = [
    ["zones", `${formatWhole(zones)}, ${zoneDays.toFixed(1)} zone-days`],
    ["events", formatWhole(rows)],
    [
      "alerts",
      `${formatWhole(alerts.length - rules.length)} of sources, ${formatWhole(rules.length)} of rules`,
    ],
    ["paging", `${formatWhole(paging.length)} of severity error and above`],
  ];
  const summary = facts.map(([name, fact]) => `${name.padEnd(10)}${fact}\n`).join("");
  if (paging.length === 0) return summary;
  const shown = paging.slice(-SHOWN).map((alert) => `  ${describeAlert(alert)}\n`);
  return `${summary}\nthe newest that page:\n${shown.join("")}`;
}

function describeAlert({
  zone,
  kind,
  key,
  severity,
  openedAt,
  lastActiveAt,
}: EventsReport["alerts"][number]) {
  const lasted = many(lastActiveAt - openedAt + 1, "minute");
  const names = [zone, kind, key].map((text) => shortenText(text, MAX_KEY_CHARS));
  return `${showTime(openedAt * MINUTE_MS)}  ${severity.padEnd(8)}  ${names.join("  ")}, ${lasted}`;
}

export function toEventsJson({ alerts, ...facts }: EventsReport, policy: { z: number; floor: number }) {
  const isoOf = (minute: number) => new Date(minute * MINUTE_MS).toISOString();
  return {
    ...policy,
    ...facts,
    alerts: alerts.map(({ openedAt, lastActiveAt, ...alert }) => ({
      ...alert,
      from: isoOf(openedAt),
      to: isoOf(lastActiveAt),
    })),
  };
}
