import { z } from "zod";
import type { Matchers } from "#alerts/rules/silence.ts";
import { readAlert } from "#db/alerts/alert-reports.ts";
import { many, showTime } from "#lib/format.ts";
import { asCalled } from "#lib/process.ts";
import { SILENCE_SCOPES } from "#model/kinds.ts";
import { IsoTime, lineOf, maySee, notFound, RowNumber, Text } from "#operations/fields.ts";
import { type AuditNote, type Changing, defineChange } from "#operations/operation.ts";
import { Refusal } from "#operations/refusal.ts";
import { requireZones } from "#operations/require-known.ts";
import { DurationMinutes, ExpiresAt, hasOneEnd, INVALID_SILENCE, MUST_END, readEnd } from "./end-silence.ts";
import { matchAlert, planSilence, storeSilence } from "./plan-silence.ts";
import { describeMatchers, readMatchers, refuseForeign, StoredMatchers, WantedMatchers } from "./silence.ts";

const PATH = "/api/v1/silences";

const PlannedSilence = z.object({
  id: z.number().int().nullable().describe("Null for a dry run."),
  startsAt: IsoTime,
  expiresAt: IsoTime,
  matchers: StoredMatchers,
  reason: Text,
  createdBy: Text,
  alertIds: z.array(z.number().int()).describe("The unresolved alerts that the silence matches now."),
  equalIds: z.array(z.number().int()).describe("Silences with the same matchers that are not over."),
});
type PlannedSilence = z.infer<typeof PlannedSilence>;

const Added = z.union([
  PlannedSilence,
  z
    .object({ items: z.array(PlannedSilence) })
    .describe("If `alerts` was given: one silence for each subject."),
]);

export const addSilence = defineChange({
  name: "silences.add",
  summary: "Mute alerts for a while",
  description:
    "A silence keeps matching alerts from notifying channels. With dryRun=true nothing is stored, and the answer lists the alerts that the silence would match. Every other call adds a silence. If an answer is lost, read the list before you try again. A second, equal silence has no further effect.",
  http: ["POST", PATH],
  tag: "Silences",
  scope: "act",
  refuses: [404, 422],
  query: ["dryRun"],
  input: z
    .strictObject({
      matchers: WantedMatchers.optional(),
      alerts: z
        .array(RowNumber("an alert"))
        .min(1)
        .max(200)
        .optional()
        .meta({ flag: "alert" })
        .describe("Instead of matchers: mutes what these alerts are about."),
      scope: z
        .enum(SILENCE_SCOPES, `must be one of ${SILENCE_SCOPES.join(", ")}`)
        .optional()
        .describe(
          `With alerts, ${SILENCE_SCOPES.join(", ")}: what of them is muted. Default: the address or network that most events share, else the rule.`,
        ),
      durationMinutes: DurationMinutes.meta({ flag: "for", unit: "minutes" }).describe(
        "From now on: 30m, 2h, 7d.",
      ),
      expiresAt: ExpiresAt,
      reason: lineOf(500).describe("Why the alerts are silenced."),
      dryRun: z
        .enum(["true", "false"])
        .default("false")
        .meta({ isSwitch: true })
        .describe("Store nothing, and show what the silence would mute."),
    })
    .refine(({ matchers, alerts }) => matchers !== undefined || alerts !== undefined, {
      path: ["matchers"],
      error: "must be given, or alerts instead: a silence for every alert is refused",
      ...INVALID_SILENCE,
    })
    .refine(({ matchers, alerts }) => matchers === undefined || alerts === undefined, {
      path: ["alerts"],
      error: "must be given without matchers: the alerts already say what is muted",
      ...INVALID_SILENCE,
    })
    .refine(({ alerts, scope }) => scope === undefined || alerts !== undefined, {
      path: ["scope"],
      error: "must be given with alerts",
      ...INVALID_SILENCE,
    })
    .refine(hasOneEnd, MUST_END),
  output: Added,
  example: { matchers: { zone: [101], rule: ["942*"] }, reason: "load test", durationMinutes: 120 },
  created: (output) => {
    if ("items" in output) return output.items.some(({ id }) => id !== null) ? PATH : null;
    return output.id === null ? null : `${PATH}/${output.id}`;
  },
  command: {
    examples: [
      'silences add --zone 101 --rule 942100 --for 2h --reason "load test"',
      `silences add --rule '942*' --severity info,warning --for 1d --reason "new rule set"`,
      'silences add --alert 17 --for 30m --reason "known" --by alice',
      'silences add --alert 17,18 --scope rule --for 30m --reason "known"',
    ],
    help: "A silence mutes alerts that match every given option. Of one option, any value is enough. The channels that were notified of an alert are still notified when it resolves. Only --kind self mutes alerts of Longwatch about itself. When the silence ends, Longwatch notifies the channels of alerts that still fire and were muted.",
    say: (output) => ("items" in output ? output.items : [output]).map(say).join(""),
  },
  run: async (changing, asked) => {
    const { caller, tx, now } = changing;
    const { alerts, reason, dryRun } = asked;
    const added: PlannedSilence[] = [];
    const audit: AuditNote[] = [];
    for (const matchers of await readSubjects(changing, asked)) {
      const wanted = { matchers, expiresAtMs: readEnd(asked, now), reason, by: caller.name, nowMs: now };
      const planned = await planSilence(tx, wanted);
      const stored = dryRun === "true" ? null : await storeSilence(tx, wanted);
      added.push({ id: stored?.id ?? null, ...planned });
      if (stored !== null) audit.push(stored.audit);
    }
    const [only] = added;
    return { output: alerts === undefined && only !== undefined ? only : { items: added }, audit };
  },
});

type Asked = z.output<typeof addSilence.input>;

/** Returns what is to be muted: the wanted matchers, or those of each alert. Alerts with the same matchers have one. */
async function readSubjects(changing: Changing, { matchers, alerts, scope }: Asked): Promise<Matchers[]> {
  const { caller, tx } = changing;
  if (matchers !== undefined) {
    refuseForeign(caller, matchers.zone);
    await requireZones(changing, matchers.zone ?? [], "matchers.zone");
    return [readMatchers(matchers, caller)];
  }
  const subjects = new Map<string, Matchers>();
  for (const id of alerts ?? []) {
    const row = await readAlert(tx, id);
    if (row === null || !maySee(caller, row.zoneId)) throw notFound(`alert ${id}`);
    const subject = matchAlert(row, caller, { scope });
    if (typeof subject === "string") throw new Refusal(422, { slug: "invalid-silence", detail: subject });
    subjects.set(JSON.stringify(subject), subject);
  }
  return [...subjects.values()];
}

function say({ id, expiresAt, matchers, alertIds, equalIds }: PlannedSilence): string {
  const list = (ids: readonly number[]) => ids.map((one) => `#${one}`).join(", ");
  const would = id === null ? "would mute" : "mutes";
  const muted =
    alertIds.length === 0
      ? `It ${would} no current alert.`
      : `It ${would} ${many(alertIds.length, "current alert")}: ${list(alertIds.slice(0, 20))}${alertIds.length > 20 ? ", ..." : ""}.`;
  const end = asCalled(` To end it: npm run -s longwatch -- silences expire ${id}`);
  const [others, stay] = equalIds.length === 1 ? ["Silence", "stays"] : ["Silences", "stay"];
  return [
    `silence ${id === null ? "(not stored)" : `#${id}`} until ${showTime(expiresAt)} UTC: ${describeMatchers(matchers)}\n`,
    `${muted}${id === null ? "" : end}\n`,
    equalIds.length === 0
      ? ""
      : `${others} ${list(equalIds)} with the same matchers ${stay} in force: alerts are muted until the last one ends.\n`,
  ].join("");
}
