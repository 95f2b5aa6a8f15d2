/** Exclusions that are proposed or tried. */
import { z } from "zod";
import { isMaskedClause } from "#alerts/operations/mask-message.ts";
import { maskText } from "#archive/rules/mask.ts";
import { planSearch } from "#archive/rules/query/plan-search.ts";
import { priceSearch } from "#archive/search/searching.ts";
import { countOnPath, listExclusions } from "#db/detection/exclusions.ts";
import { refuseRule } from "#detection/rules/exclusion/propose-exclusion.ts";
import { describeClause, toUrlPattern, writeForms } from "#detection/rules/exclusion/write-forms.ts";
import { templateOf } from "#detection/rules/verdict/path-template.ts";
import { formatWhole, many, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { EXCLUSION_REACHES, EXCLUSION_TOOLS } from "#model/kinds.ts";
import {
  IsoTime,
  Name,
  pageOf,
  RuleId,
  Text,
  Time,
  toIso,
  toIsoOrNull,
  visibleZones,
  ZoneId,
} from "#operations/fields.ts";
import { defineQuery, type QueryContext } from "#operations/operation.ts";
import { type Mistake, Refusal } from "#operations/refusal.ts";
import { nameKnown, requireZone } from "#operations/require-known.ts";
import { checkOrder } from "#operations/span.ts";
import { replayClause, Silenced } from "./replay.ts";

const DEFAULT_MS = 30 * DAY_MS;

const TriedExclusion = z
  .object({
    zone: z.number().int(),
    from: IsoTime,
    to: IsoTime,
    clause: Text.describe("The exclusion in words."),
    silenced: Silenced.describe("What the exclusion would have silenced."),
    ruleInZone: Silenced.describe("The same for the rule on every path of the zone."),
    everythingOnPath: Silenced.nullable().describe(
      "The same for every rule on the URLs of the platform's form for the path; null if there is no such form.",
    ),
    isExact: z
      .boolean()
      .describe(
        "False if numbers of events are scaled from a sample. Addresses and days are then those of rule and path.",
      ),
    records: z.number().int().describe("Number of records that were read for method and parameter."),
    together: z
      .array(z.object({ ruleId: Name, share: z.number() }))
      .describe("Other rules that match the same requests. Without them the requests are still blocked."),
    samples: z
      .array(
        z.object({
          at: IsoTime,
          ip: z.string().meta({ masked: "address" }),
          method: Name,
          url: Text,
          ruleId: Name,
          action: Name,
          parameter: Text.nullable(),
          matched: z.string().nullable().meta({ masked: "nothing" }),
          isSuspicious: z.boolean(),
        }),
      )
      .describe("Silenced events, suspicious ones first. Their texts are from requests. Escape them."),
    forms: z
      .array(z.object({ tool: z.enum(EXCLUSION_TOOLS), reach: z.enum(EXCLUSION_REACHES), text: Text }))
      .describe(
        "Texts for the platform. A reach of rule or path is wider than the exclusion. Longwatch applies none.",
      ),
    hiddenForms: z
      .number()
      .int()
      .describe(
        "Number of forms that a masked key does not see: with its addresses masked, a form would name other URLs.",
      ),
  })
  .meta({ id: "TriedExclusion" });

const PATH_RULE =
  "must be a path or its template, such as /reviews/{n}, without host, query and control characters";
const WIDE_RULE =
  "must be given, and more than / unless a parameter is given: an exclusion for a whole zone is refused";

export const tryExclusion = defineQuery({
  name: "exclusion.try",
  summary: "Show what an exclusion of a rule would have silenced",
  description:
    "Replays the exclusion over the events that are kept. Method and parameter are read of a sample of the records. Nothing is applied.",
  http: ["GET", "/api/v1/exclusions/replay"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  heavy: "read",
  refuses: [422, 503],
  input: z.strictObject({
    zone: ZoneId.optional().describe("Default: the zone, if there is only one."),
    rule: RuleId,
    path: z
      .string()
      .max(600)
      .regex(/^\/[^?#\p{C}]*$/u, PATH_RULE)
      .optional()
      .describe("The path, or its template (/reviews/{n}). Default: every path, which needs a parameter."),
    method: z
      .string()
      .regex(/^[A-Za-z-]{1,20}$/, "must be a method, such as POST")
      .transform((text) => text.toUpperCase())
      .optional()
      .meta({ wire: { type: "string" } })
      .describe("Default: every method."),
    parameter: z
      .string()
      .min(1)
      .max(200)
      .optional()
      .describe("What matched, such as ARGS:title. Default: anything."),
    from: Time.optional().describe("Default: 30 days before `to`."),
    to: Time.optional().describe("Default: now."),
  }),
  output: TriedExclusion,
  example: { zone: "101", rule: "942440", path: "/reviews/{n}", method: "POST" },
  command: {
    examples: ["exclusion try --rule 942440 --path '/reviews/{n}' --method POST --from -30d"],
    help: "The wide forms that the platform has stand beside it with their figures. Nothing is applied.",
    say: (tried, { table }) => {
      const { silenced, ruleInZone, everythingOnPath, isExact, records, together, samples, forms } = tried;
      const figures = [
        ["This exclusion", silenced],
        ["The rule in the zone", ruleInZone],
        ["Everything on the path, in the platform's form", everythingOnPath],
      ] as const;
      const rows = figures.flatMap(([what, one]) => {
        if (one === null) return [];
        return [[what, ...[one.events, one.addresses, one.days, one.suspicious].map(formatWhole)]];
      });
      const others = together.map(
        ({ ruleId, share }) => `${toLine(ruleId, 100)} (${formatWhole(share * 100)} %)`,
      );
      const lines = [
        `${tried.clause}, zone ${tried.zone}, ${showTime(tried.from)} to ${showTime(tried.to)}`,
        table(["WOULD SILENCE", "EVENTS", "ADDRESSES", "DAYS", "SUSPICIOUS"], rows).trimEnd(),
        isExact ? "" : `Numbers of events are scaled from a sample; ${many(records, "record")} were read.`,
        others.length === 0 ? "" : `Other rules on the same requests: ${others.join(", ")}.`,
        ...samples.map(
          (one) =>
            `${one.isSuspicious ? "suspicious" : "ordinary  "}  ${one.at}  ${toLine(`${one.ip} ${one.method} ${one.url}  ${one.parameter ?? ""} ${one.matched ?? ""}`, 200)}`,
        ),
        ...forms.map(({ tool, reach, text }) => `\n${tool} (${reach}):\n${text}`),
        tried.hiddenForms === 0
          ? ""
          : `\n${many(tried.hiddenForms, "form")} not shown: an address is in them, which your key does not see.`,
      ];
      return `${lines.filter((line) => line !== "").join("\n")}\n`;
    },
  },
  run: async (asked, { zone: given, rule, path, method = null, parameter = null, ...span }) => {
    const { db, caller, now, searching, signal } = asked;
    const zone = given ?? onlyZone(asked);
    await requireZone(asked, zone);
    const to = span.to ?? now;
    const from = span.from ?? to - DEFAULT_MS;
    checkOrder({ name: "from", ms: from }, { name: "to", ms: to });
    const template = path === undefined ? null : templateOf(path);
    if ((template ?? "/") === "/" && parameter === null) throw refuse({ field: "path", rule: WIDE_RULE });
    const refuseIt = (feature?: string) => {
      const refusal = refuseRule(rule, feature);
      if (refusal !== null)
        throw refuse({ field: "rule", value: rule, rule: `cannot be excluded: ${refusal}` });
    };
    refuseIt();
    const page = { buckets: 0, page: 0, pageSize: 1 };
    const plan = planSearch({ from, to, query: "", filters: [], groupBy: ["ip"], ...page });
    const price = await priceSearch(db, searching, { zoneIds: [zone], plan });
    const clause = { ruleIds: [rule], template, method, parameter };
    const { feature, origins, ...replayed } = await searching.runInPlace(
      { caller },
      { ...price, signal },
      (deps, stopped) =>
        replayClause({ ...deps, openedBlocks: searching.openedBlocks }, zone, { clause, from, to }, stopped),
    );
    refuseIt(feature);
    const written = template === null ? [] : writeForms(zone, clause, origins);
    // A masked form is another pattern than the one that was counted, and its `*` may match far more.
    const forms = caller.masked ? written.filter(({ text }) => maskText(text) === text) : written;
    return {
      zone,
      from: toIso(from),
      to: toIso(to),
      clause: describeClause(clause),
      ...replayed,
      samples: replayed.samples.map(({ logId: _logId, ...one }) => ({ ...one, at: toIso(one.at) })),
      forms,
      hiddenForms: written.length - forms.length,
    };
  },
});

/** @throws {Refusal} 422 if the caller may see several zones */
function onlyZone({ caller, service }: Pick<QueryContext, "caller" | "service">): number {
  const zones = visibleZones(caller, undefined) ?? service.zoneIds;
  const [zone] = zones;
  if (zone !== undefined && zones.length === 1) return zone;
  throw refuse({ field: "zone", rule: `is missing: there are several zones (${nameKnown(zones)})` });
}

function refuse(mistake: Mistake): Refusal {
  return new Refusal(422, { slug: "invalid-exclusion", mistakes: [mistake] });
}

/** More than zones have rules that misfire. */
const MOST = 200;

const Item = z
  .object({
    id: z.number().int(),
    zone: z.number().int(),
    spikeId: z.number().int().nullable().describe("The latest spike that it was proposed for."),
    clause: Text.describe("The exclusion in words."),
    ruleIds: z.array(Text),
    template: Text.nullable(),
    method: Text.nullable(),
    parameter: Text.nullable(),
    isHidden: z
      .boolean()
      .describe(
        "True if an address in these texts is masked for your key: tried as they are, they match nothing.",
      ),
    proposedAt: IsoTime,
    followedAt: IsoTime.nullable().describe(
      "The rule's last event on the path, if somebody seems to have applied it.",
    ),
    today: z
      .object({ events: z.number().int(), suspicious: z.number().int() })
      .nullable()
      .describe(
        "Events of other rules on the path within 24 hours, and those of addresses with three or more rules elsewhere. Null if it was not followed.",
      ),
  })
  .meta({ id: "Exclusion" });

export const listProposed = defineQuery({
  name: "exclusion.list",
  tab: "Exclusions",
  summary: "List proposed exclusions, newest first, and watch those that were followed",
  description: `Lists at most ${MOST}. Longwatch applies no exclusion: one counts as followed if its rule fell silent on the path.`,
  http: ["GET", "/api/v1/exclusions"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  input: z.strictObject({ zone: ZoneId.optional() }),
  output: pageOf(Item),
  command: {
    examples: ["exclusion list --zone 101"],
    columns: [
      { head: "ZONE", get: ({ zone }) => String(zone) },
      { head: "EXCLUSION", get: ({ clause }) => toLine(clause, 200) },
      { head: "PROPOSED (UTC)", get: ({ proposedAt }) => showTime(proposedAt) },
      {
        head: "FOLLOWED (UTC)",
        get: ({ followedAt }) => (followedAt === null ? "-" : showTime(followedAt)),
      },
      { head: "TODAY", get: ({ today }) => (today === null ? "-" : formatWhole(today.events)) },
      { head: "SUSPICIOUS", get: ({ today }) => (today === null ? "-" : formatWhole(today.suspicious)) },
    ],
    empty: "No exclusion was proposed.",
  },
  run: async ({ db, caller, now }, { zone }) => {
    const rows = await listExclusions(db, visibleZones(caller, zone), MOST);
    const items = [];
    for (const { id, zoneId, spikeId, clause, proposedAt, followedAt } of rows) {
      const today =
        followedAt === null ? null : await countOnPath(db, { zoneId, clause }, { nowMs: now, toUrlPattern });
      const isHidden = caller.masked && isMaskedClause(clause);
      const shown = { id, zone: zoneId, spikeId, clause: describeClause(clause), ...clause, isHidden, today };
      items.push({ ...shown, proposedAt: toIso(proposedAt), followedAt: toIsoOrNull(followedAt) });
    }
    return { items, next: null };
  },
});
