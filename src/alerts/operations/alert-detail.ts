import { z } from "zod";
import { parseDetails, toAlertRecord } from "#alerts/rules/alert-record.ts";
import { ruleTitle } from "#alerts/rules/alert-spike.ts";
import {
  attackerChoice,
  type SilenceChoice,
  silenceChoices,
  silenceCommand,
} from "#alerts/rules/message/commands.ts";
import { toSilences } from "#alerts/rules/silence.ts";
import { maskRows } from "#archive/rules/mask.ts";
import { listAlerts, type ReportedAlert, readAlertDeliveries } from "#db/alerts/alert-reports.ts";
import { type AlertMarks, readMarks } from "#db/alerts/marks.ts";
import { readSilences } from "#db/alerts/silences.ts";
import { isAdvised } from "#delivery/rules/message/describe-alert.ts";
import { suggestZ } from "#detection/rules/backtest/backtest.ts";
import { sensitivityOf } from "#detection/rules/detection-settings.ts";
import { DAY_MS } from "#lib/units.ts";
import { type AlertMessage, alertMessage } from "#model/alert-message.ts";
import {
  ADVICE_STATES,
  ALERT_STATES,
  ATTACKER_ROLES,
  ATTACKER_STATES,
  MARKS,
  MUTES,
  REASONS,
  SEVERITIES,
  SILENCE_SCOPES,
  SOURCE_KINDS,
} from "#model/kinds.ts";
import { isPersons } from "#model/words.ts";
import { IsoTime, Name, RowId, Text, toIso, toIsoOrNull } from "#operations/fields.ts";
import { defineQuery, type QueryContext } from "#operations/operation.ts";
import { StoredMatchers } from "../silences/silence.ts";
import { Alert, findAlert, listSilenced, MutedBy, toAlert, toMutedBy } from "./alert.ts";
import { maskAttacker, maskMessage } from "./mask-message.ts";
import { sayAlert } from "./say-alert.ts";
import { describeVerdicts, VERDICT_PARTS } from "./verdict.ts";

/** The marks of a rule that a suggestion is made from. */
const MARKS_MS = 30 * DAY_MS;
const MOST_MEMBERS = 1_000;

const count = z.number();

export const Top = z.array(z.object({ value: Name, count, share: z.number() }));
/** Counted addresses. For a masked key, those that look the same are counted together. */
const TopAddresses = Top.meta({ masked: maskRows });

const Transition = z
  .object({
    transition: z.number().int(),
    at: IsoTime,
    reason: Name.describe(`One of ${REASONS.join(", ")}.`),
    state: z.enum(ALERT_STATES),
    severity: z.enum(SEVERITIES).nullable(),
    channels: z.array(Name),
    silencedBy: z.number().int().nullable(),
    mutedBy: z
      .enum(MUTES)
      .nullable()
      .describe("The reason, apart from a silence, why no channel was notified of the transition."),
    held: z.array(Name).describe("Channels that are notified after their quiet hours."),
    waiting: z.array(Name).describe("Channels that are notified after the group interval."),
    by: Text.nullable(),
    to: Text.nullable().describe("Whom an assignment names; empty if nobody has the alert from then on."),
    note: Text.nullable(),
  })
  .meta({ id: "AlertTransition" });

const Delivery = z.object({
  channel: Name,
  transition: z.number().int(),
  reason: Name,
  state: Name,
  attempts: z.number().int(),
  createdAt: IsoTime,
  nextAttemptAt: IsoTime.nullable(),
  deliveredAt: IsoTime.nullable(),
  lastError: Text.nullable(),
});

const Facts = z.object({
  windowMinutes: z.number(),
  count,
  usual: z.number(),
  threshold: z.number(),
  score: z.number(),
  peak: count,
  times: z.number().nullable(),
  actions: z.object({ blocked: count, logged: count, challenged: count, other: count }),
  sparkline: z.array(z.number()).describe("Event counts of consecutive spans of equal length, oldest first."),
});

/** The most frequent values among the events of an alert. */
export const TopValues = z.object({
  ips: TopAddresses,
  asns: Top,
  countries: Top,
  paths: Top,
  userAgents: Top,
  ja4s: Top,
});

const Member = z.object({
  zoneId: z.number().int(),
  ruleId: Name,
  ruleTitle: Name.nullable(),
  severity: Name,
  count,
  alertId: z.number().int().nullable().describe("The rule's own alert. It notifies no channel."),
});

/** Has no address for a masked key. User agents and paths stay, because they must match. */
const Choice = z
  .object({ scope: z.enum(SILENCE_SCOPES), matchers: StoredMatchers, command: Name })
  .meta({ masked: "open" });

const Attacker = z
  .object({
    kind: z.enum(SOURCE_KINDS),
    key: Name.describe(
      "An address or its network, a JA4, a path, a user agent or a network's number. Escape it.",
    ),
    role: z.enum(ATTACKER_ROLES).describe("facet: another view of an attacker that has a name already."),
    state: z.enum(ATTACKER_STATES).describe("resolved: by a person."),
    startedAt: IsoTime,
    lastSeenAt: IsoTime.describe("The end of the latest minute in which it was over its threshold."),
    finding: Name.describe("What it does, in a sentence. Escape it."),
    silence: Choice.nullable().describe("The silence of this attacker alone. Null if none can name it."),
  })
  .meta({ masked: maskAttacker });

export const AlertDetail = Alert.extend({
  facts: Facts.nullable().describe(
    "The numbers of the latest message; null if the stored message cannot be read.",
  ),
  evidence: TopValues.nullable().describe(
    "The most frequent sources and targets of the events. The values are text from requests. Escape them.",
  ),
  advice: z
    .object({
      state: z.enum(ADVICE_STATES),
      text: Text.nullable(),
      reason: Name.nullable(),
      source: z
        .literal("platform AI")
        .describe("The advice is not verified, and Longwatch has not applied it."),
    })
    .nullable()
    .describe(
      "What the platform said about the alert's rule in all of its zone. Null if the alert is not about rules.",
    ),
  attackers: z
    .array(Attacker)
    .describe(
      "Who attacks in an incident, the newest first, then those that are not active; empty for other alerts.",
    ),
  unnamedAttackers: count.describe("How many further attackers there are."),
  rules: z.array(Name).describe("For alerts about changes: the rules that changed. Else empty."),
  condition: z
    .object({ filters: z.array(Text), query: Text })
    .nullable()
    .describe("For a custom condition: the search whose events it counts. Else null."),
  members: z
    .array(Member)
    .describe(
      "The rules that are part of an incident, or that match the same requests as the rule of the alert.",
    ),
  spikeId: z.number().int().nullable(),
  howToSilence: Name.nullable(),
  silenceChoices: z.array(Choice).describe("Silences that can be made from the alert, the narrowest first."),
  silenced: z
    .array(MutedBy.extend({ from: IsoTime, to: IsoTime.nullable().describe("Null while it lasts.") }))
    .describe("When silences that match the alert were in force while the alert was open, oldest first."),
  transitions: z.array(Transition),
  deliveries: z.array(Delivery),
  ...VERDICT_PARTS,
  mark: z.enum(MARKS).nullable().describe("How a person marked the alert."),
  markedAt: IsoTime.nullable(),
  suggestedZ: z
    .object({
      z: z.number(),
      now: z.number().describe("The z that is set for the rule."),
      marked: z
        .number()
        .int()
        .describe("Spikes of the rule that were marked in the last 30 days, and not as an attack."),
      silenced: z.number().int().describe("Those of them that would not have opened."),
    })
    .nullable()
    .describe("A threshold score for a rule that is often marked, and not as an attack."),
  message: alertMessage
    .meta({ masked: maskMessage })
    .nullable()
    .optional()
    .describe("The latest message, if it was asked for."),
}).meta({ id: "AlertDetail" });
export type AlertDetail = z.infer<typeof AlertDetail>;

export const showAlert = defineQuery({
  name: "alerts.show",
  summary: "Show one alert with its history, evidence and deliveries",
  http: ["GET", "/api/v1/alerts/:id"],
  tag: "Alerts",
  scope: "read",
  input: z.strictObject({
    id: RowId.describe("The alert's number."),
    message: z
      .enum(["true", "false"])
      .default("false")
      .meta({ flag: null, isSwitch: true })
      .describe("Add the latest message, with everything that the channels show of it."),
  }),
  output: AlertDetail,
  command: {
    preset: { message: "true" },
    examples: ["alerts show 17", "alerts show 17 --json"],
    help: "Shows the message of the alert, every transition and every delivery.",
    say: sayAlert,
  },
  run: async (asked, { id, message }) => {
    const { db, caller, now, service } = asked;
    const row = await findAlert(db, caller, id);
    const marks = await readMarks(db, row, now - MARKS_MS);
    const { detection } = service.alerting();
    return {
      ...(await describeAlert(asked, row)),
      ...(await describeVerdicts(db, row, now)),
      mark: marks.mark,
      markedAt: marks.markedAt?.toISOString() ?? null,
      suggestedZ: suggestFor(row, marks, (zoneId, ruleId) => sensitivityOf(detection, zoneId, ruleId).z),
      ...(message === "true" ? { message: parseDetails(row.details).message } : {}),
    };
  },
});

/** Reads everything that is shown of an alert, except how it was marked. */
async function describeAlert(
  { db, caller, now }: QueryContext,
  row: ReportedAlert,
): Promise<Omit<AlertDetail, "mark" | "markedAt" | "suggestedZ" | keyof typeof VERDICT_PARTS>> {
  // The silences in force now, and all that were while the alert was open.
  const span = { fromMs: row.firedAt.getTime(), toMs: row.resolvedAt?.getTime() ?? now };
  const silences = toSilences(await readSilences(db, span));
  const deliveries = await readAlertDeliveries(db, row.id);
  const { message } = parseDetails(row.details);
  const choices = message === null ? [] : silenceChoices(message, caller.masked);
  return {
    ...toAlert(row, { silences, now }),
    facts: message === null ? null : Facts.parse(message),
    evidence: message === null ? null : TopValues.parse(message.top),
    advice: message === null || !isAdvised(message) ? null : { ...message.advice, source: "platform AI" },
    ...(await describeIncident({ db, caller }, row, message)),
    rules: [...(message?.rules ?? [])],
    condition: message?.condition ?? null,
    spikeId: row.spikeId,
    howToSilence: caller.masked ? silenceCommand(row.id, choices) : (message?.howToSilence ?? null),
    silenceChoices: choices.map((choice) => ({
      ...choice,
      command: silenceCommand(row.id, [choice]) ?? "",
    })),
    silenced: listSilenced(row, silences, now).map(({ silence, fromMs, toMs }) => ({
      ...toMutedBy(silence),
      from: toIso(fromMs),
      to: toIsoOrNull(toMs),
    })),
    transitions: toAlertRecord(row).transitions.map((one) => ({
      transition: one.transition,
      at: toIso(one.at),
      reason: one.reason,
      state: one.state,
      severity: one.severity ?? null,
      channels: [...one.channels],
      silencedBy: one.silencedBy ?? null,
      mutedBy: one.mutedBy ?? null,
      held: isPersons(one.reason) ? [] : [...one.held],
      waiting: [...one.waiting],
      by: one.by ?? null,
      to: one.to ?? null,
      note: one.note ?? null,
    })),
    deliveries: deliveries.map((one) => ({
      ...one,
      createdAt: one.createdAt.toISOString(),
      nextAttemptAt: ["pending", "sending"].includes(one.state) ? one.nextAttemptAt.toISOString() : null,
      deliveredAt: one.deliveredAt?.toISOString() ?? null,
    })),
  };
}

/** Returns who attacks, and the rules that are part of it. */
async function describeIncident(
  { db, caller }: Pick<QueryContext, "db" | "caller">,
  { id, zoneId }: ReportedAlert,
  message: AlertMessage | null,
): Promise<Pick<AlertDetail, "attackers" | "unnamedAttackers" | "members">> {
  const { attackers = [], unnamedAttackers = 0, members = [] } = message ?? {};
  const alerts = members.length === 0 ? [] : await listAlerts(db, { incidentId: id, limit: MOST_MEMBERS });
  // The newest alert of a rule comes first.
  const idOf = new Map(alerts.toReversed().map((alert) => [alert.ruleId, alert.id]));
  const toChoice = (choice: SilenceChoice | null) => {
    const isShown = choice !== null && !(caller.masked && choice.matchers.ip !== undefined);
    return isShown ? { ...choice, command: silenceCommand(null, [choice]) ?? "" } : null;
  };
  return {
    // The traits of an attacker are addresses, too, and are left out.
    attackers: z.array(Attacker).parse(
      attackers.map((one) => ({
        ...one,
        state: one.isResolved === true ? "resolved" : one.isActive ? "active" : "quiet",
        startedAt: toIso(one.startedAt),
        lastSeenAt: toIso(one.lastSeenAt),
        silence: toChoice(attackerChoice(zoneId, one)),
      })),
    ),
    unnamedAttackers,
    members: z.array(Member).parse(
      members.map((one) => ({
        ...one,
        ruleTitle: ruleTitle(one.ruleId),
        alertId: idOf.get(one.ruleId) ?? null,
      })),
    ),
  };
}

function suggestFor(
  { zoneId, ruleId }: ReportedAlert,
  { noiseScores }: AlertMarks,
  readZ: (zoneId: number, ruleId: string) => number,
): AlertDetail["suggestedZ"] {
  if (zoneId === null || ruleId === null) return null;
  const now = readZ(zoneId, ruleId);
  const suggested = suggestZ(noiseScores, now);
  return suggested === null ? null : { ...suggested, now, marked: noiseScores.length };
}
