/** Tests the routes of an alert that is described. */
import { z } from "zod";
import { toAlertSpike } from "#alerts/rules/alert-spike.ts";
import type { Context } from "#alerts/rules/assess.ts";
import { type ExplainedQuietHours, explainAlert } from "#alerts/rules/explain-alert.ts";
import { readRaisableSpikes } from "#db/alerts/alerts.ts";
import { findChannel } from "#delivery/receivers/channels/registry.ts";
import { readActiveSilences } from "#jobs/alerts/report-service.ts";
import { formatDuration, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { ROUTE_VERDICTS, SEVERITIES, SUBJECT_KINDS } from "#model/kinds.ts";
import { nameZone } from "#model/zones.ts";
import { IsoTime, Name, RuleId, requireEveryZone, Time, toIso, ZoneId } from "#operations/fields.ts";
import { defineQuery, type QueryContext, type Settled } from "#operations/operation.ts";
import { type Mistake, Refusal } from "#operations/refusal.ts";

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
function describeExplained(explained: ExplainedRouting, isLive: boolean): string {
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
  return `${about.join(", ")}, at ${showTime(at)} UTC`;
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
    holds: `mutes ${channels.join(", ")} until the quiet hours are over`,
    "not now": "not in force at this time",
    "no match": "the alert does not match",
    "not critical alerts": "in force, but critical alerts are notified",
    "not these channels": "in force, but for other channels",
    "not Longwatch's own": "quiet hours never mute Longwatch's own alerts",
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
    held.length === 0 ? "" : `after the quiet hours: ${held.join(", ")}`,
  ].filter((part) => part !== "");
  const what = reason === "worse" ? ` (${severity})` : "";
  return `${REASONS[reason] ?? reason}${what}: ${parts.length === 0 ? "no channel" : parts.join("; ")}`;
}

const Input = z.strictObject({
  zone: z.string().max(100).optional().describe("The shield zone, by number or by name."),
  rule: RuleId.optional().describe("The rule. Only an alert of the kind self has no zone and no rule."),
  severity: z.enum(SEVERITIES),
  kind: z.enum(SUBJECT_KINDS).default("spike"),
  at: Time.optional().describe("When. Default: now."),
  live: z
    .enum(["true", "false"])
    .default("true")
    .meta({ isSwitch: true, flagDefault: "false" })
    .describe("Also apply the silences and the spikes in the database."),
});
type Input = z.output<typeof Input>;

/** Silences in force and open spikes: what counts beside the routes. */
type LiveState = Pick<Context, "silences" | "firing">;

export const testRoutes = defineQuery({
  name: "config.routes.test",
  summary: "Show step by step who would be notified of an alert, and why",
  description:
    "The alert need not exist. The answer comes from the functions that decide in the service. Nothing is sent or stored.",
  http: ["GET", "/api/v1/routing/test"],
  tag: "Alerts",
  scope: "read",
  input: Input,
  output: ExplainedRouting,
  command: {
    examples: [
      "config routes test --zone 101 --rule 942100 --severity critical",
      "config routes test --zone shop --rule 942100 --severity error --at 2026-11-22T23:30",
      "config routes test --kind self --severity error --live --json",
    ],
    help: `Shows step by step what the service would do with an alert that does not exist: which routes match and why the others do
not, what mutes the alert, which quiet hours hold channels back, and who is notified of the beginning, of a rise a minute
later and of the end. The answer comes from the functions that decide in the service. Nothing is sent or stored.

With --live the silences and the spikes of the database count as well; without it the command connects to nothing.
Exit code 1 if no channel would be notified, now or after its quiet hours.`,
    say: (explained, { input }) => describeExplained(explained, input.live !== "false"),
    exitCode: ({ transitions: [first] }) =>
      first !== undefined && first.notified.length + first.held.length > 0 ? 0 : 1,
  },
  settle: (settled, input) => (input.live === "true" ? null : explainRouting(settled, input, NOTHING_LIVE)),
  run: async (asked, input) => {
    requireEveryZone(asked.caller);
    const isLive = input.live === "true";
    return explainRouting(asked, input, isLive ? await readLiveState(asked, input.at) : NOTHING_LIVE);
  },
});

const NOTHING_LIVE: LiveState = { silences: [], firing: [] };

/** Says who would be notified of an alert that does not exist, by the functions that decide in the service. */
function explainRouting({ service, zones, now }: Settled, input: Input, live: LiveState): ExplainedRouting {
  const subject = readSubject(input, zones());
  const nowMs = input.at ?? now;
  const { routing, channels } = service.alerting();
  const kinds = new Map(channels.map(({ name, kind }) => [name, kind]));
  const laterMessageOf = (channel: string) =>
    findChannel(kinds.get(channel))?.capabilities.laterTransitions ?? "post-anew";
  const explained = explainAlert(subject, {
    nowMs,
    routing,
    asks: [],
    laterMessageOf,
    ...live,
  });
  return { at: toIso(nowMs), subject, ...(structuredClone(explained) as Mutable<typeof explained>) };
}

/** The same, as the schema's types have it: arrays of the pure function are read-only. */
type Mutable<Value> = { -readonly [Key in keyof Value]: Mutable<Value[Key]> };

function readSubject(
  { zone, rule, severity, kind }: Input,
  zones: ReturnType<Settled["zones"]>,
): ExplainedRouting["subject"] {
  const isSelf = kind === "self";
  const mistakes: Mistake[] = [];
  const named = Object.entries(zones).find(([, { name }]) => name !== null && name === zone)?.[0];
  const zoneId = ZoneId.safeParse(named ?? zone).data ?? null;
  if (zoneId === null && !(isSelf && zone === undefined))
    mistakes.push({
      field: "zone",
      ...(zone === undefined ? {} : { value: JSON.stringify(zone) }),
      rule: "must be a shield zone's number, or a name from zones",
    });
  if (!isSelf && !rule) mistakes.push({ field: "rule", rule: "is missing; it must be a rule's id" });
  if (isSelf && rule !== undefined)
    mistakes.push({ field: "rule", rule: "must be left out with the kind self" });
  if (mistakes.length > 0) throw new Refusal(400, { mistakes });
  const zoneName = zoneId === null ? null : (zones[zoneId]?.name ?? null);
  return { kind, zoneId, zoneName, ruleId: rule ?? null, severity };
}

async function readLiveState({ db, log, now }: QueryContext, nowMs = now): Promise<LiveState> {
  const spikes = (await readRaisableSpikes(db, { closedAfterMs: nowMs })).map((spike) => toAlertSpike(spike));
  const firing = spikes.filter(({ closedAtMs }) => closedAtMs === null);
  return { silences: await readActiveSilences(db, log, nowMs), firing };
}
