import { formatWhole, many, showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { ENDINGS } from "#model/kinds.ts";
import type { EventsReport } from "./replay-events.ts";

const SHOWN = 20;
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
