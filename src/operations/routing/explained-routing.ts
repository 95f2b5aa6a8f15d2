import { z } from "zod";
import { formatDuration, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { ROUTE_VERDICTS, SEVERITIES, SUBJECT_KINDS } from "#model/kinds.ts";
import { nameZone } from "#model/zones.ts";
import type { ExplainedQuietHours } from "#stages/alerting/explain-alert.ts";
import { IsoTime, Name } from "../fields.ts";

const Names = z.array(Name);

export const ExplainedRouting = z
  .object({
    at: IsoTime,
    subject: z.object({
      kind: z.enum(SUBJECT_KINDS),
      zoneId: z.number().int().nullable(),
      zoneName: Name.nullable(),
      ruleId: Name.nullable(),
      severity: z.enum(SEVERITIES),
    }),
    routes: z.array(
      z.object({
        path: Name,
        verdict: z.enum(ROUTE_VERDICTS),
        mismatches: Names,
        channels: Names,
        continues: z.boolean(),
      }),
    ),
    quietHours: z.array(z.object({ path: Name, verdict: Name, channels: Names })),
    inhibitedBy: Name.nullable(),
    silencedBy: z.number().int().nullable(),
    timing: z.object({
      groupWaitMs: z.number(),
      groupIntervalMs: z.number(),
      repeatIntervalMs: z.number(),
    }),
    repeatIntervalMs: z.record(z.string(), z.number()),
    transitions: z
      .array(
        z.object({
          reason: Name,
          severity: z.enum(SEVERITIES),
          notified: Names,
          updated: Names,
          waiting: Names,
          held: Names,
        }),
      )
      .describe("The beginning, a rise a minute later, and the end."),
  })
  .meta({ id: "ExplainedRouting" });
export type ExplainedRouting = z.infer<typeof ExplainedRouting>;

/** Describes what the service would do with an alert, in the order in which it decides. */
export function describeExplained(explained: ExplainedRouting, isLive: boolean): string {
  const { subject, routes, quietHours, transitions } = explained;
  const parts = [
    section("1. Routes", routes.map(describeRoute)),
    section("2. Mutes", describeMutes(explained, isLive)),
    section(
      "3. Quiet hours",
      quietHours.length === 0 ? ["none are configured"] : quietHours.map(describeHours),
    ),
    section("4. Waits and repeats", subject.kind === "self" ? SELF_TIMING : describeTiming(explained)),
    section("5. Who is notified", transitions.map(describeTransition)),
  ];
  return `${describeSubject(explained)}\n\n${parts.join("\n")}`;
}

function section(title: string, lines: readonly string[]): string {
  return `${title}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

function describeSubject({ subject, at }: ExplainedRouting): string {
  const { kind, zoneId, zoneName, ruleId, severity } = subject;
  const about = [
    zoneId === null ? "no zone" : nameZone(zoneId, zoneName),
    ...(ruleId === null ? [] : [`rule ${toLine(ruleId, 60)}`]),
    `severity ${severity}`,
    `kind ${kind}`,
  ];
  return `${about.join(", ")}, at ${showTime(Date.parse(at))} UTC`;
}

function describeRoute({
  path,
  verdict,
  mismatches,
  channels,
  continues,
}: ExplainedRouting["routes"][number]): string {
  const to = channels.length === 0 ? "no channel" : channels.join(", ");
  const next = continues ? "; continue: the next route is tried as well" : "";
  const said = {
    taken: `matches, goes to ${to}${next}`,
    "passed on": "matches, a route below takes the alert",
    "no match": `does not match by ${mismatches.join(" and ")}`,
    skipped: "not tried",
  }[verdict];
  return `${path}: ${said}`;
}

function describeMutes({ inhibitedBy, silencedBy, subject }: ExplainedRouting, isLive: boolean): string[] {
  if (!isLive) return ["silences and inhibitions are not checked; --live reads them from the database"];
  const uninhibited =
    subject.kind === "self"
      ? "Longwatch's own alerts are never inhibited"
      : "no open spike inhibits the alert";
  return [
    silencedBy === null ? "no silence matches" : `silence #${silencedBy} mutes the alert`,
    inhibitedBy === null ? uninhibited : `${inhibitedBy} mutes the alert: a spike matches its source`,
  ];
}

function describeHours({ path, verdict, channels }: ExplainedRouting["quietHours"][number]): string {
  const said: Readonly<Record<ExplainedQuietHours["verdict"], string>> = {
    holds: `holds back ${channels.join(", ")} until the quiet hours are over`,
    "not now": "not in force at this time",
    "no match": "the alert does not match",
    "not critical alerts": "in force, but critical alerts are notified",
    "not these channels": "in force, but for other channels",
    "not Longwatch's own": "Longwatch's own alerts are never held back",
  };
  return `${path}: ${said[verdict as ExplainedQuietHours["verdict"]]}`;
}

const SELF_TIMING = ["Longwatch's own alerts are sent at once, each by itself, without reminders"];

function describeTiming({ timing, repeatIntervalMs }: ExplainedRouting): string[] {
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

const REASONS: Readonly<Record<string, string>> = {
  first: "when it begins",
  join: "when an attacker joins",
  again: "when a second wave begins",
  worse: "when it gets worse a minute later",
  repeat: "as a reminder",
  advice: "when the recommendation arrives",
  resolved: "when it ends",
};

function describeTransition(transition: ExplainedRouting["transitions"][number]): string {
  const { reason, severity, notified, updated, waiting, held } = transition;
  const parts = [
    notified.length === 0 ? "" : `notified: ${notified.join(", ")}`,
    updated.length === 0 ? "" : `updated in place: ${updated.join(", ")}`,
    waiting.length === 0 ? "" : `notified after group_interval: ${waiting.join(", ")}`,
    held.length === 0 ? "" : `held until the quiet hours are over: ${held.join(", ")}`,
  ].filter((part) => part !== "");
  const what = reason === "worse" ? ` (${severity})` : "";
  return `${REASONS[reason] ?? reason}${what}: ${parts.length === 0 ? "no channel" : parts.join("; ")}`;
}
