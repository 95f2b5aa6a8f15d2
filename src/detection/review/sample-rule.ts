/** The requests behind a rule's figures in a plan, with what their records say. */
import { z } from "zod";
import { type SampledRequest, sampleRequests } from "#archive/rules/sql/count-requests.ts";
import { readRecords } from "#archive/search/read-records.ts";
import { toUrlPattern } from "#detection/rules/exclusion/write-forms.ts";
import { cutSample } from "#detection/rules/verdict/word-verdict.ts";
import { toLine } from "#lib/text.ts";
import { DAY_MS } from "#lib/units.ts";
import { REVIEW_SAMPLES } from "#model/kinds.ts";
import { readRequest } from "#model/request-facts.ts";
import { IsoTime, Name, RuleId, Text, toIso, ZoneId } from "#operations/fields.ts";
import { defineQuery } from "#operations/operation.ts";
import { ExclusionList, openReview, RuleList } from "./open-review.ts";

const Sample = z.object({
  kind: z
    .enum(REVIEW_SAMPLES)
    .describe("A request that the rule would stop, or one that gets through without it."),
  class: Name,
  at: IsoTime,
  logId: Name,
  ip: z.string().meta({ masked: "address" }),
  method: Name,
  url: Text,
  action: Name,
  parameter: Text.nullable(),
  matched: z.string().nullable().meta({ masked: "nothing" }),
});

export const sampleRule = defineQuery({
  name: "review.samples",
  summary: "Show the visitors that a rule would stop, and the attacks that would get through without it",
  description:
    "The newest requests of the last seven days that no other blocking rule matches, one of each sender, at most ten of each kind. Their records are read. Texts are from requests. Escape them.",
  http: ["GET", "/api/v1/review/samples"],
  tag: "Trends",
  scope: "read",
  zone: "zone",
  heavy: "read",
  refuses: [422, 503],
  input: z.strictObject({
    zone: ZoneId,
    rule: RuleId,
    block: RuleList.optional().describe("The rules that block. Default: none but the rule."),
    exclude: ExclusionList.optional().describe(
      "Paths on which rules do not block, such as 942100@/checkout.",
    ),
  }),
  output: z.object({ items: z.array(Sample), next: z.null() }),
  command: {
    examples: ["review samples --zone 101 --rule 942100"],
    limit: null,
    columns: [
      { head: "WHOSE", get: ({ class: of }) => of },
      { head: "TIME (UTC)", get: ({ at }) => at.slice(0, 19).replace("T", " ") },
      { head: "ADDRESS", get: ({ ip }) => toLine(ip, 45) },
      { head: "REQUEST", get: ({ method, url }) => toLine(`${method} ${url}`.trim(), 120) },
      { head: "MATCHED", get: ({ matched }) => toLine(matched ?? "-", 60) },
    ],
    empty: "No visitor would be stopped, and no attack would get through.",
  },
  run: async (asked, { zone, rule, block = [], exclude = [] }) => {
    const { caller, searching } = asked;
    const patterns = exclude.flatMap((one) => (one.rule === rule ? [toUrlPattern(one.path)] : []));
    const others = block.filter((one) => one !== rule);
    const { read, days } = await openReview(asked, zone);
    const samples = await read(async (deps, readRows, stopped) => {
      const { rows } = await readRows((classified) =>
        sampleRequests(classified, { rule, others, patterns, from: days.judge.from * DAY_MS }),
      );
      const found = rows.map((row) => JSON.parse(row) as SampledRequest);
      // A masked key sees no matched text, so no record is read for it.
      const placed = found.map(({ at, logId }) => ({ occurredAt: at, logId, archived: null }));
      const records = caller.masked
        ? []
        : await readRecords({ ...deps, openedBlocks: searching.openedBlocks }, zone, placed, stopped);
      return found.map((one, index) => {
        const record = records[index];
        const {
          method = "",
          parameter = null,
          matched = null,
        } = record === undefined ? {} : readRequest(record, { url: one.url, ua: "", ruleId: rule }, "");
        return {
          kind: one.kind,
          class: one.class,
          ...cutSample({ ...one, ruleId: rule, method, parameter, matched }),
        };
      });
    });
    return { items: samples.map(({ ruleId: _rule, at, ...one }) => ({ ...one, at: toIso(at) })), next: null };
  },
});
