import { z } from "zod";
import { many, showTime } from "#lib/format.ts";
import { escapeText } from "#lib/text.ts";
import { DAY_MS, MINUTE_MS } from "#lib/units.ts";
import { sensitivityOf } from "#stages/detection/detection-settings.ts";
import { REPLAYED_DAYS } from "#stages/detection/minutes-kept.ts";
import { IsoTime, Name, RuleId, toIso, ZoneId } from "../fields.ts";
import { defineQuery } from "../operation.ts";
import { replayStore } from "../replay-store.ts";

export const ReplayedSensitivity = z.object({ z: z.number(), floor: z.number() });

const number = (lowest: number, highest: number) =>
  z
    .string()
    .regex(/^\d{1,7}(\.\d{1,3})?$/, `must be a number from ${lowest} to ${highest}`)
    .transform(Number)
    .refine((value) => value >= lowest && value <= highest, `must be a number from ${lowest} to ${highest}`)
    .meta({ wire: { type: "number", minimum: lowest, maximum: highest } });

const Replayed = z.object({
  settings: ReplayedSensitivity,
  alerts: z.array(
    z.object({
      from: IsoTime.describe(
        "The end of the minute that reached the threshold. The service may find it up to a minute earlier.",
      ),
      to: IsoTime.describe("The end of the last minute that was not quiet."),
      isOpen: z.boolean(),
      severity: Name,
      kind: Name,
      peak: z.number(),
      score: z.number(),
    }),
  ),
});
type Replayed = z.infer<typeof Replayed>;

const RuleReplay = z
  .object({
    from: IsoTime,
    to: IsoTime,
    before: Replayed.describe("With the settings in force."),
    after: Replayed.describe("With the settings of the request."),
    yaml: Name.describe("The lines for the configuration file that keep the settings of the request."),
  })
  .meta({ id: "RuleReplay" });

export const replayRule = defineQuery({
  name: "rules.replay",
  summary: "Show which alerts other settings would have raised for a rule",
  description:
    "Replays the stored counts with the settings in force and with z and floor. Silences and routes are not applied. Nothing is changed.",
  http: ["GET", "/api/v1/rules/replay"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  heavy: "read",
  input: z.strictObject({
    zone: ZoneId,
    rule: RuleId,
    z: number(1, 10).optional().describe("Default: the setting in force."),
    floor: number(1, 1_000_000).optional().describe("Default: the setting in force."),
    days: number(1, REPLAYED_DAYS).default(30).describe("How many days of stored counts are replayed."),
  }),
  output: RuleReplay,
  command: {
    examples: ["rules replay --zone 101 --rule 942100 --z 5 --floor 100"],
    help: "Silences and routes are not applied, and nothing is changed. To keep the settings, copy the last lines into the configuration file.",
    say: ({ before, after, yaml }) => {
      const lines = [...describeReplayed("In force", before), ...describeReplayed("Replayed", after)];
      return [...lines, "", ...yaml.split("\n").map(escapeText)].join("\n");
    },
  },
  run: async ({ db, now: nowMs, service }, { zone, rule, days, ...asked }) => {
    const inForce = sensitivityOf(service.alerting().detection, zone, rule);
    const wanted = { z: asked.z ?? inForce.z, floor: asked.floor ?? inForce.floor };
    const isSame = wanted.z === inForce.z && wanted.floor === inForce.floor;
    const replayed = { zoneId: zone, ruleId: rule, days: Math.floor(days), nowMs };
    const [before, after = before] = await replayStore(db, replayed, isSame ? [inForce] : [inForce, wanted]);
    const show = (settings: typeof wanted, { alerts }: typeof before): Replayed => {
      const shown = alerts.map(({ fromMinute, toMinute, isOpen, episode }) => ({
        from: toIso((fromMinute + 1) * MINUTE_MS),
        to: toIso(toMinute * MINUTE_MS),
        isOpen,
        severity: episode.severity,
        kind: episode.kind,
        peak: episode.peak,
        score: episode.score,
      }));
      return { settings, alerts: shown };
    };
    return {
      from: toIso(nowMs - Math.floor(days) * DAY_MS),
      to: toIso(nowMs),
      before: show(inForce, before),
      after: show(wanted, after),
      yaml: toYaml(zone, rule, wanted),
    };
  },
});

function describeReplayed(what: string, { settings: { z, floor }, alerts }: Replayed): string[] {
  return [
    `${what}, z ${z} and floor ${floor}: ${many(alerts.length, "alert")}`,
    ...alerts.map(
      ({ from, to, isOpen, severity, peak }) =>
        `  ${showTime(Date.parse(from))} to ${isOpen ? "now" : showTime(Date.parse(to))}   ${severity}, peak ${peak}`,
    ),
  ];
}

/** JSON is YAML: a rule's id stays one text, whatever is in it. The console's labels have the words of the comments. */
function toYaml(zone: number, rule: string, { z, floor }: z.infer<typeof ReplayedSensitivity>): string {
  return [
    "detection:",
    "  overrides:",
    `    - zone: [${zone}]`,
    `      rule: [${JSON.stringify(rule)}]`,
    `      z: ${z} # score of a spike`,
    `      floor: ${floor} # fewest events of a spike`,
    "",
  ].join("\n");
}
