/** Verdicts as they are shown and explained. */
import { z } from "zod";
import { parseDetails } from "#alerts/rules/alert-record.ts";
import type { ReportedAlert } from "#db/alerts/alert-reports.ts";
import { readMark, readSubjectMarks } from "#db/alerts/marks.ts";
import type { Queryable } from "#db/client.ts";
import { readProposals } from "#db/detection/exclusions.ts";
import { readVerdicts } from "#db/detection/verdicts.ts";
import { describeClause } from "#detection/rules/exclusion/write-forms.ts";
import { pickSame, REMEMBERED_MS } from "#detection/rules/verdict/judge-verdict.ts";
import { formatRounded, formatShare, many, showTime } from "#lib/format.ts";
import { toLine } from "#lib/text.ts";
import { MARKS, VERDICT_CLASSES, VERDICT_FEATURES } from "#model/kinds.ts";
import {
  countRequests,
  countThrough,
  type StoredVerdict,
  sampleRequest,
  storedVerdict,
} from "#model/verdict.ts";
import {
  describeBackground,
  describeLimits,
  describeMarksBefore,
  formatOdds,
  rowsOfOdds,
} from "#model/words.ts";
import { IsoTime, RowId, Text, toIso } from "#operations/fields.ts";
import { type DrawTable, defineQuery } from "#operations/operation.ts";
import { findAlert } from "./alert.ts";
import { maskVerdict } from "./mask-message.ts";

const Verdict = storedVerdict
  .extend({
    judgedAt: IsoTime,
    since: IsoTime.describe("Start of the window that was judged."),
    sample: sampleRequest.extend({ at: IsoTime }).nullable().describe("Text of a request. Escape it."),
  })
  .meta({ id: "Verdict", masked: maskVerdict });
type Verdict = z.output<typeof Verdict>;

const Proposal = z
  .object({
    clause: Text.describe("The exclusion in words, with text of requests. Escape it."),
    proposedAt: IsoTime,
    followedAt: IsoTime.nullable().describe(
      "The rule's last event on the clause, if a person seems to have applied the exclusion.",
    ),
  })
  .meta({ id: "Proposal" });

/** Parts of a verdict that an answer has. */
export const VERDICT_PARTS = {
  verdicts: z.array(Verdict).describe("The verdicts, the latest last. Empty if the alert was not judged."),
  markedBefore: z
    .array(z.object({ mark: z.enum(MARKS), at: IsoTime, alertId: z.number().int().nullable() }))
    .describe(
      "How other alerts of the last 90 days about the same were marked, the newest first: the same rule on the same path, or a same attacker.",
    ),
  exclusions: z.array(Proposal).describe("Exclusions that were proposed for the alert."),
};

export async function describeVerdicts(db: Queryable, row: ReportedAlert, now: number) {
  const { spikeId } = row;
  if (spikeId === null) return { verdicts: [], markedBefore: [], exclusions: [] };
  const proposals = await readProposals(db, spikeId);
  const rows = (await readVerdicts(db, [spikeId])).get(spikeId) ?? [];
  return {
    verdicts: rows.map(toVerdict),
    markedBefore: pickSame(await readSubjectMarks(db, row, now - REMEMBERED_MS)),
    exclusions: proposals.map(({ clause, proposedAt, followedAt }) => ({
      clause: describeClause(clause),
      proposedAt: proposedAt.toISOString(),
      followedAt: followedAt?.toISOString() ?? null,
    })),
  };
}

function toVerdict({ judgedAt, since, sample, ...rest }: StoredVerdict): z.input<typeof Verdict> {
  const at = sample === null ? null : { ...sample, at: toIso(sample.at) };
  return { ...rest, judgedAt: toIso(judgedAt), since: toIso(since), sample: at };
}

const Explained = z.object({
  id: z.number().int(),
  headline: Text.nullable().describe("The text may contain text from event logs. Escape it."),
  mark: z.enum(MARKS).nullable().describe("How a person marked the alert."),
  ...VERDICT_PARTS,
});
type Explained = z.output<typeof Explained>;

export const explainAlert = defineQuery({
  name: "explain.alert",
  summary: "Say what an alert is, why, and what to do",
  description:
    "The verdict at each time with its odds, what is said without any evidence, the numbers that it is computed from and what each adds, one sample request, the proposed exclusion, and how the same was marked before.",
  http: ["GET", "/api/v1/alerts/:alert/verdict"],
  tag: "Alerts",
  scope: "read",
  input: z.strictObject({ alert: RowId.meta({ operand: false }).describe("The alert's number.") }),
  output: Explained,
  command: {
    name: "",
    examples: ["explain --alert 17", "explain --alert 17 --json"],
    help: 'ADDS is the log odds that a number adds to the likeliest class (+) or takes from it (-), compared with the second class. The last row is their sum: +3 is 95 of 100 against the second class. "alerts mark" says that a verdict is wrong.',
    say: (explained, { table }) => `${describeVerdict(explained, table).join("\n")}\n`,
  },
  run: async ({ db, caller, now }, { alert }) => {
    const row = await findAlert(db, caller, alert);
    const headline = parseDetails(row.details).message?.headline ?? null;
    return {
      id: row.id,
      headline,
      mark: await readMark(db, row),
      ...(await describeVerdicts(db, row, now)),
    };
  },
});

/** Texts of a verdict may hold text of requests. */
const line = (text: string) => toLine(text, 500);

function describeVerdict(explained: Explained, draw: DrawTable): string[] {
  const { id, headline, mark, verdicts, markedBefore, exclusions } = explained;
  const marks = [...(mark === null ? [] : [`Marked as ${mark}.`]), ...describeMarksBefore(markedBefore)];
  const verdict = verdicts.at(-1);
  const head = `alert #${id}  ${line(headline ?? "")}`;
  if (verdict === undefined) return [head, "This alert has no verdict.", ...marks];
  const { exclusion, counts, classes, odds, look, title } = verdict;
  const numbers = rowsOfOdds(verdict).map(({ words, value, adds }) => {
    const bar = (adds < 0 ? "-" : "+").repeat(Math.min(Math.round(Math.abs(adds) * 4), 24));
    return [words, value === undefined ? "" : (value?.toFixed(2) ?? "?"), adds.toFixed(2).padStart(5), bar];
  });
  const rows = verdicts.map((one) => [
    one.look,
    showTime(one.judgedAt),
    one.said,
    formatShare(one.odds),
    formatRounded(countRequests(one.counts)),
  ]);
  const refusal = exclusion?.refusal ?? null;
  return [
    head,
    "",
    `${line(title)}, odds ${formatOdds(odds)}. Time: ${look}.`,
    ...describeFacts(verdict).map(([name, text]) => `  ${name.padEnd(12)}${line(text)}`),
    ...marks.map((text) => `  ${"Marks".padEnd(12)}${text}`),
    "",
    `What the odds are made of. The ${VERDICT_FEATURES.length} numbers are of ${many(countRequests(counts), "request")}, from 0 to 1:`,
    draw(["NUMBER", "VALUE", "ADDS", ""], numbers),
    ...describeLimits(verdict),
    `Odds: ${VERDICT_CLASSES.map((name) => `${name} ${formatShare(classes[name])}`).join(", ")}.`,
    "",
    draw(["TIME", "JUDGED (UTC)", "SAID", "ODDS", "REQUESTS"], rows),
    ...(exclusion === null || refusal !== null
      ? [
          line(
            `${exclusion?.form === "narrow" ? "Exclusion:" : "No exclusion is proposed."} ${refusal ?? ""}`,
          ),
        ]
      : [
          `Exclusion (${exclusion.form}), for ${formatShare(exclusion.covered)} of ${many(exclusion.events, "event")}. Longwatch does not apply it.`,
          ...exclusion.clauses.map((clause) => `  ${line(describeClause(clause))}`),
        ]),
    ...exclusions
      .filter(({ followedAt }) => followedAt !== null)
      .map(({ clause, followedAt }) => `Followed since ${showTime(followedAt ?? "")}: ${line(clause)}`),
  ];
}

function describeFacts({ counts, sample, missing, ...verdict }: Verdict): (readonly [string, string])[] {
  const { addresses, networks, paths, blocked, challenged, other, records } = counts;
  const usually = describeBackground(verdict.background);
  const { ip = "", method = "", url = "", action = "", ruleId, parameter, matched } = sample ?? {};
  const found = matched == null ? "" : `, matched ${parameter ?? ""} ${matched}`;
  return [
    ...verdict.for.map((text) => ["For", text] as const),
    ["Against", verdict.against ?? "nothing"],
    [
      "Got through",
      `${formatRounded(countThrough(counts))} of ${many(countRequests(counts), "request")} since ${showTime(verdict.since)} UTC; ${formatRounded(blocked)} blocked, ${formatRounded(challenged)} challenged${other === 0 ? "" : `, of ${formatRounded(other)} not known`}`,
    ],
    ...(usually === "" ? [] : [["Usually", usually] as const]),
    [
      "From",
      `${many(addresses, "address", "addresses")} of ${many(networks, "network")} on ${many(paths, "path")}, in ${many(counts.events, "event")}; ${many(records, "request")} with a record`,
    ],
    ["Who", verdict.who],
    ["Sample", sample === null ? "none" : `${action}: ${method} ${url} from ${ip}, rule ${ruleId}${found}`],
    ["Not known", missing.join(", ") || "nothing"],
    ["Next", verdict.nextStep],
  ];
}
