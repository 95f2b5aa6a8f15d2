import { z } from "zod";
import { findTemplateMistake, PLACEHOLDERS } from "#alerts/rules/message/links.ts";
import { findCronMistakes, readPauses } from "#lib/cron.ts";
import { formatDuration, isTimeZone } from "#lib/format.ts";
import { classifyAction, foldAction } from "#model/action-class.ts";
import { CONDITION_NAME, CONDITION_NAME_RULE, MOST_CONDITIONS } from "#model/custom-condition.ts";
import {
  EQUAL_LABELS,
  LOWERING_VERDICTS,
  QUIET_CRITICAL,
  SEVERITIES,
  SOURCE_MODES,
  SUBJECT_KINDS,
  WEEKDAYS,
} from "#model/kinds.ts";
import { TICK_NAMES, TICKS, type Tick, type TickName } from "#model/schedule.ts";
import { isAddressPattern } from "#model/subject.ts";
import { accountEntry } from "./accounts-entry.ts";
import {
  accounts,
  channelEntry,
  conditionEntry,
  duration,
  forwardEntry,
  zoneName,
  zones,
} from "./entry-fields.ts";
import { signInEntry } from "./sign-in-entry.ts";

const CLOCK_RULE = "must be a time of day between 00:00 and 23:59, in quotes";
/** The result is in minutes after midnight. */
const clockTime = z
  .string(CLOCK_RULE)
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, CLOCK_RULE)
  .transform((text) => Number(text.slice(0, 2)) * 60 + Number(text.slice(3)));

const ZONE_RULE = "must be a time zone such as Europe/Amsterdam or UTC";
const timeZone = z.string(ZONE_RULE).refine(isTimeZone, ZONE_RULE);

/** The name of a channel where a route or another part refers to it. */
export const channelName = z.string();
/** The name of a channel or a destination. */
const entryName = z
  .string()
  .regex(/^[a-z0-9][a-z0-9_-]{0,62}$/, "must be lower-case letters, digits, - and _, at most 63");
/** Label names follow Prometheus and Alertmanager. The names of built-in labels are refused. */
const LABEL_RULE =
  "must be a label's name: letters, digits and _, and none of zone, zone_id, zone_name, rule_id, severity";
const labelName = z
  .string()
  .regex(
    /^(?!(?:zone|zone_id|zone_name|rule_id|severity|alertname|fingerprint|flood)$)[a-zA-Z][a-zA-Z0-9_]{0,39}$/,
    LABEL_RULE,
  );
const LABEL_VALUE_RULE = "must be text of 1 to 60 printable characters";
const labelValue = z
  .string(LABEL_VALUE_RULE)
  .regex(/^[^\p{C}\p{Z}]+(?: [^\p{C}\p{Z}]+)*$/u, LABEL_VALUE_RULE)
  .max(60, LABEL_VALUE_RULE);
const zoneLabels = z
  .record(labelName, z.array(labelValue).min(1))
  .optional()
  .describe("labels of the zone, from zones; the zone must have every named label, with one of its values");
const account = accounts.optional().describe("accounts of the zone, from accounts");
const RULE_PATTERN = 'must be a rule\'s id in quotes, or the beginning of ids and a star ("942*")';
const rules = z.array(z.string(RULE_PATTERN).regex(/^[^*]+\*?$/, RULE_PATTERN)).min(1);
const labels = z.array(z.enum(EQUAL_LABELS));

const patterns = z.array(z.string().min(1).max(300)).min(1);

const matchers = z
  .strictObject({
    zone: zones.optional().describe("numbers, or names from zones"),
    zone_labels: zoneLabels,
    account,
    rule: rules.optional(),
    severity: z.array(z.enum(SEVERITIES)).min(1).optional(),
    kind: z.array(z.enum(SUBJECT_KINDS)).min(1).optional(),
    ip: z
      .array(z.string().refine(isAddressPattern, "must be an address or a network (198.51.100.0/24)"))
      .min(1)
      .optional()
      .describe("a source that fires, or that most events of the alert share"),
    asn: patterns.optional().describe("AS64500, or the number alone"),
    country: patterns.optional(),
    ja4: patterns.optional(),
    ua: patterns.optional().describe("a user agent; it may end in a star (curl/*)"),
    url: patterns.optional().describe("a path; it may end in a star (/api/*)"),
  })
  .describe("every named member must match, with one of its values; empty matchers match every alert");

const timing = {
  group_wait: duration.optional().describe("how long the first message waits after the spike opened"),
  group_interval: duration
    .optional()
    .describe("the shortest time between two notifications of one alert that gets worse"),
  repeat_interval: duration
    .optional()
    .describe("the time after which a channel gets a reminder that an alert still fires"),
};

const plainRoute = z.strictObject({
  matchers: matchers.optional(),
  channels: z.array(channelName).optional().describe("if missing, the channels of the route above"),
  continue: z.boolean().optional().describe("whether the next route of the same level is tried as well"),
  ...timing,
});
export interface RouteEntry extends z.output<typeof plainRoute> {
  readonly routes?: readonly RouteEntry[] | undefined;
}
const route: z.ZodType<RouteEntry> = plainRoute.extend({
  get routes() {
    return z.array(route).optional();
  },
});

const inhibition = z.strictObject({
  source: matchers,
  target: matchers,
  equal: labels.optional().describe("the labels in which source and target must be equal"),
});

const quietHours = z
  .strictObject({
    time_zone: timeZone,
    days: z
      .array(z.enum(WEEKDAYS))
      .min(1)
      .optional()
      .describe("the days on which they begin; if missing, every day"),
    from: clockTime,
    to: clockTime,
    channels: z.array(channelName).min(1).optional(),
    matchers: matchers.optional(),
    critical: z
      .enum(QUIET_CRITICAL)
      .optional()
      .describe("whether critical alerts notify at once (tell, the default) or after the quiet hours (hold)"),
  })
  .refine(({ from, to }) => from !== to, { path: ["to"], message: "must not be the same as from" });

const MAX_LINK_RULES = 100;
const TITLE_RULE = "must be text of 1 to 40 characters";
export const link = z.strictObject({
  title: z
    .string(TITLE_RULE)
    .refine((text) => text.trim() !== "" && Array.from(text).length <= 40, TITLE_RULE)
    .describe("the link's name, at most 40 characters"),
  url: z
    .string()
    .superRefine((url, context) => {
      const mistake = findTemplateMistake(url);
      if (mistake !== null) context.addIssue(mistake);
    })
    .describe(
      `an http or https address; placeholders after the host: ${PLACEHOLDERS.map((name) => `{${name}}`).join(" ")}`,
    ),
  matchers: matchers.optional(),
});

const sensitivity = {
  z: z
    .number()
    .min(1)
    .max(10)
    .optional()
    .describe("the score from which a count is a spike; a higher value raises fewer alerts"),
  floor: z
    .int()
    .min(1)
    .max(1_000_000)
    .optional()
    .describe("the fewest events in 3, 15 or 60 minutes; 10 if missing"),
};

const knownSource = z
  .strictObject({
    zone: zones.optional().describe("if missing, every zone"),
    zone_labels: zoneLabels,
    account,
    ip: z
      .array(z.string().refine(isAddressPattern, "must be an address or a network (198.51.100.0/24)"))
      .min(1)
      .optional(),
    asn: patterns.optional().describe("AS64500, or the number alone"),
    ja4: patterns.optional(),
    ua: patterns.optional().describe("a user agent; it may end in a star (Pingdom*)"),
    reason: z.string().trim().min(1).max(500),
    until: z.iso
      .datetime({ offset: true, error: "must be a time such as 2026-12-31T00:00:00Z" })
      .optional()
      .describe("the time from which the source counts again"),
  })
  .refine(
    ({ ip, asn, ja4, ua }) => [ip, asn, ja4, ua].some((values) => values !== undefined),
    "must name at least one of ip, asn, ja4, ua",
  );

const MAX_KNOWN = 200;
const MAX_DESTINATIONS = 20;
const MAX_ACCOUNTS = 100;

const WORD_RULE = "must be a word of 1 to 60 printable characters, in quotes if it is a number";
const actionWords = z
  .array(
    z
      .string(WORD_RULE)
      .regex(/^[^\p{C}]{1,60}$/u, WORD_RULE)
      .refine((word) => foldAction(word) !== "", WORD_RULE),
  )
  .max(100, "must be at most 100 words")
  .default([]);
const actions = z
  .strictObject({
    stopped: actionWords.describe("words of requests that the WAF stopped"),
    through: actionWords.describe("words of requests that got through"),
  })
  .superRefine((lists, context) => {
    for (const [list, other, fixed] of [
      ["stopped", "through", ["logged"]],
      ["through", "stopped", ["blocked", "challenged"]],
    ] as const)
      for (const [index, word] of lists[list].entries()) {
        const path = [list, index];
        if (lists[other].some((one) => foldAction(one) === foldAction(word)))
          context.addIssue({ code: "custom", path, message: `must not be in actions.${other} as well` });
        else if (fixed.some((name) => name === classifyAction(foldAction(word))))
          context.addIssue({
            code: "custom",
            path,
            message: "must be another word: block and challenge are stopped, and log is through",
          });
      }
  });

/** A cron expression that is not too rare for what its job promises. */
function tick({ expression, slowest, longestMs, because }: Tick) {
  const fallback = slowest === undefined ? `"${expression}"` : `"${expression}" to "${slowest}"`;
  const limit = `must run at least every ${formatDuration(longestMs)}`;
  return z
    .string()
    .superRefine((text, context) => {
      const mistakes = findCronMistakes(text);
      if (mistakes.length === 0 && readPauses(text).longestMs > longestMs)
        mistakes.push(`${limit}: ${because}`);
      for (const mistake of mistakes) context.addIssue(mistake);
    })
    .optional()
    .describe(`default ${fallback}; ${limit}`);
}

const ticks = Object.fromEntries(TICK_NAMES.map((name) => [name, tick(TICKS[name])]));

/** The schema of the configuration file. Its output has times as numbers. */
export const configFile = z
  .strictObject({
    $schema: z.string().optional(),
    channels: z.record(entryName, channelEntry).optional(),
    forward: z
      .record(entryName, forwardEntry)
      .refine(
        (entries) => Object.keys(entries).length <= MAX_DESTINATIONS,
        `must be at most ${MAX_DESTINATIONS} destinations`,
      )
      .optional()
      .describe("destinations to which events are forwarded"),
    accounts: z
      .record(entryName, accountEntry)
      .refine(
        (entries) => Object.keys(entries).length <= MAX_ACCOUNTS,
        `must be at most ${MAX_ACCOUNTS} accounts`,
      )
      .optional()
      .describe("more accounts of the platform beside that of EDGE_API_KEY; read at the start"),
    zones: z
      .record(
        z.string().regex(/^[1-9]\d{0,9}$/, "must be a zone's number"),
        z.strictObject({
          name: zoneName.optional(),
          labels: z
            .record(labelName, labelValue)
            .refine((labels) => Object.keys(labels).length <= 10, "must be at most 10 labels")
            .optional(),
        }),
      )
      .optional()
      .describe("names and labels of shield zones, for messages, lists, metrics and matchers"),
    route: route.optional(),
    links: z
      .array(link)
      .max(MAX_LINK_RULES, `must be at most ${MAX_LINK_RULES} links`)
      .optional()
      .describe("runbooks and dashboards for the messages; a message shows the first five that match"),
    inhibit: z.array(inhibition).optional(),
    quiet_hours: z.array(quietHours).optional(),
    conditions: z
      .record(z.string().regex(CONDITION_NAME, CONDITION_NAME_RULE), conditionEntry)
      .refine(
        (entries) => Object.keys(entries).length <= MOST_CONDITIONS,
        `must be at most ${MOST_CONDITIONS} conditions`,
      )
      .optional()
      .describe("searches that raise an alert: custom conditions"),
    detection: z
      .strictObject({
        ...sensitivity,
        sources: z
          .enum(SOURCE_MODES)
          .optional()
          .describe(
            "whether many rules or addresses of one source raise alerts; shadow stores and does not send",
          ),
        notify_from_addresses: z
          .int()
          .min(1)
          .max(1_000)
          .optional()
          .describe(
            "a rule that spikes alone is listed and notifies nobody if fewer addresses send most of its events",
          ),
        verify_crawlers: z
          .boolean()
          .optional()
          .describe("whether DNS is asked if an address that claims to be a search engine's crawler is one"),
        verdict: z
          .strictObject({
            raise: z
              .boolean()
              .default(true)
              .describe("whether an attack with odds of 90 of 100 makes an alert critical"),
            lower: z
              .array(z.enum(LOWERING_VERDICTS))
              .default([])
              .describe("verdicts whose alerts are at most a warning, also those of incidents"),
          })
          .optional()
          .describe("what a verdict does to the severity of an alert, beside its usual effect"),
        known_sources: z
          .array(knownSource)
          .max(MAX_KNOWN, `must be at most ${MAX_KNOWN} entries`)
          .optional()
          .describe("sources that are expected, such as your own scanner: their events are not counted"),
        overrides: z
          .array(
            z.strictObject({
              zone: zones.optional(),
              zone_labels: zoneLabels,
              account,
              rule: rules.optional(),
              ...sensitivity,
            }),
          )
          .optional(),
      })
      .optional(),
    actions: actions
      .optional()
      .describe(
        "what an action of the platform means for its request, besides the built-in words; read at the start",
      ),
    sign_in: signInEntry
      .optional()
      .describe("an OpenID Connect issuer at which people sign in to the console (docs/sign-in.md)"),
    digest: z
      .strictObject({
        channels: z.array(channelName).min(1).describe("the channels that get the digest of each week"),
      })
      .optional()
      .describe("the weekly digest; if missing, it is sent to no channel"),
    schedule: z
      .strictObject(ticks as Record<TickName, ReturnType<typeof tick>>)
      .optional()
      .describe("when each job runs: cron expressions of six fields in UTC; read at the start"),
  })
  .meta({ title: "Longwatch configuration file" });
export type ConfigFile = z.output<typeof configFile>;

/** Returns the file's JSON Schema, for editors. */
export function toJsonSchema(): unknown {
  return z.toJSONSchema(configFile, { io: "input" });
}
