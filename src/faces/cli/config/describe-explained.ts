import { formatDuration } from "#lib/format.ts";
import { toLine } from "#lib/plain-text.ts";
import { showTime } from "#lib/show-time.ts";
import type { Subject } from "#model/subject.ts";
import { nameZone, type Zones } from "#model/zones.ts";
import type {
  ExplainedAlert,
  ExplainedQuietHours,
  ExplainedRoute,
  ExplainedTransition,
} from "#stages/alerting/explain-alert.ts";

export interface ExplainedFacts {
  readonly subject: Subject;
  readonly nowMs: number;
  /** Whether silences and spikes were read from the database. */
  readonly isLive: boolean;
  readonly zones: Zones | undefined;
}

/** Describes what the service would do with an alert, in the order in which it decides. */
export function describeExplained(explained: ExplainedAlert, facts: ExplainedFacts): string {
  const { routes, quietHours, transitions } = explained;
  const parts = [
    section("1. Routes", routes.map(describeRoute)),
    section("2. Mutes", describeMutes(explained, facts)),
    section(
      "3. Quiet hours",
      quietHours.length === 0 ? ["none are configured"] : quietHours.map(describeHours),
    ),
    section("4. Waits and repeats", facts.subject.kind === "self" ? SELF_TIMING : describeTiming(explained)),
    section("5. Who is notified", transitions.map(describeTransition)),
  ];
  return `${describeSubject(facts)}\n\n${parts.join("\n")}`;
}

function section(title: string, lines: readonly string[]): string {
  return `${title}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

function describeSubject({ subject, nowMs, zones }: ExplainedFacts): string {
  const { kind, zoneId, ruleId, severity } = subject;
  const about = [
    zoneId === null ? "no zone" : nameZone(zoneId, zones?.[zoneId]?.name),
    ...(ruleId === null ? [] : [`rule ${toLine(ruleId, 60)}`]),
    `severity ${severity}`,
    `kind ${kind}`,
  ];
  return `${about.join(", ")}, at ${showTime(nowMs)} UTC`;
}

function describeRoute({ path, verdict, mismatches, channels, continues }: ExplainedRoute): string {
  const to = channels.length === 0 ? "no channel" : channels.join(", ");
  const next = continues ? "; continue: the next route is tried as well" : "";
  switch (verdict) {
    case "taken":
      return `${path}: matches, goes to ${to}${next}`;
    case "passed on":
      return `${path}: matches, a route below takes the alert${next}`;
    case "no match":
      return `${path}: does not match by ${mismatches.join(" and ")}`;
    case "skipped":
      return `${path}: not tried`;
    default:
      return verdict satisfies never;
  }
}

function describeMutes(
  { inhibitedBy, silencedBy }: ExplainedAlert,
  { isLive, subject }: ExplainedFacts,
): string[] {
  if (!isLive) return ["silences and inhibitions are not checked; --live reads them from the database"];
  const self = subject.kind === "self";
  return [
    silencedBy === null ? "no silence matches" : `silence #${silencedBy} mutes the alert`,
    inhibitedBy === null
      ? self
        ? "Longwatch's own alerts are never inhibited"
        : "no open spike inhibits the alert"
      : `${inhibitedBy} mutes the alert: a spike matches its source`,
  ];
}

function describeHours({ path, verdict, channels }: ExplainedQuietHours): string {
  switch (verdict) {
    case "holds":
      return `${path}: holds back ${channels.join(", ")} until the quiet hours are over`;
    case "not now":
      return `${path}: not in force at this time`;
    case "no match":
      return `${path}: the alert does not match`;
    case "not critical alerts":
      return `${path}: in force, but critical alerts are notified`;
    case "not these channels":
      return `${path}: in force, but for other channels`;
    case "not Longwatch's own":
      return `${path}: Longwatch's own alerts are never held back`;
    default:
      return verdict satisfies never;
  }
}

const SELF_TIMING = ["Longwatch's own alerts are sent at once, each by itself, without reminders"];

function describeTiming({ timing, repeatIntervalMs }: ExplainedAlert): string[] {
  const { groupWaitMs, groupIntervalMs } = timing;
  const wait =
    groupWaitMs === 0 ? "at once" : `${formatDuration(groupWaitMs)} after the spike opened (group_wait)`;
  const repeats = Object.entries(repeatIntervalMs).map(([name, ms]) => `${name} every ${formatDuration(ms)}`);
  return [
    `the first message is sent ${wait}`,
    "if the attackers of an incident send its events, the incident's messages name it instead",
    `at least ${formatDuration(groupIntervalMs)} between two notifications of a rise (group_interval)`,
    repeats.length === 0 ? "no reminders" : `reminders while it fires: ${repeats.join(", ")}`,
  ];
}

const REASONS: Readonly<Record<ExplainedTransition["reason"], string>> = {
  first: "when it begins",
  join: "when an attacker joins",
  worse: "when it gets worse a minute later",
  repeat: "as a reminder",
  advice: "when the recommendation arrives",
  resolved: "when it ends",
};

function describeTransition(transition: ExplainedTransition): string {
  const { reason, severity, notified, updated, waiting, held } = transition;
  const parts = [
    notified.length === 0 ? "" : `notified: ${notified.join(", ")}`,
    updated.length === 0 ? "" : `updated in place: ${updated.join(", ")}`,
    waiting.length === 0 ? "" : `notified after group_interval: ${waiting.join(", ")}`,
    held.length === 0 ? "" : `held until the quiet hours are over: ${held.join(", ")}`,
  ].filter((part) => part !== "");
  const what = reason === "worse" ? ` (${severity})` : "";
  return `${REASONS[reason]}${what}: ${parts.length === 0 ? "no channel" : parts.join("; ")}`;
}
