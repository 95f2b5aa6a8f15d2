import { z } from "zod";
import { readRaisableSpikes } from "#db/alerting/alerts.ts";
import { readActiveSilences } from "#jobs/alerting/read-active-silences.ts";
import { SEVERITIES, SUBJECT_KINDS } from "#model/kinds.ts";
import { toAlertSpike } from "#stages/alerting/alert-spike.ts";
import type { Context } from "#stages/alerting/assess.ts";
import { explainAlert } from "#stages/alerting/explain-alert.ts";
import { findChannel } from "#stages/delivery/channels/registry.ts";
import { RuleId, requireEveryZone, Time, toIso, ZoneId } from "../fields.ts";
import { type Asked, defineQuery, type Settled } from "../operation.ts";
import { type Mistake, Refusal } from "../refusal.ts";
import { describeExplained, ExplainedRouting } from "./explained-routing.ts";

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

async function readLiveState({ db, log, now }: Asked, nowMs = now): Promise<LiveState> {
  const spikes = (await readRaisableSpikes(db, { closedAfterMs: nowMs })).map((spike) => toAlertSpike(spike));
  const firing = spikes.filter(({ closedAtMs }) => closedAtMs === null);
  return { silences: await readActiveSilences(db, log, nowMs), firing };
}
