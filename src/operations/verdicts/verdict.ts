import { z } from "zod";
import type { ReportedAlert } from "#db/alerting/alert-reports.ts";
import { readSubjectMarks } from "#db/alerting/marks.ts";
import type { Queryable } from "#db/client.ts";
import { readProposals } from "#db/detection/exclusions.ts";
import { readVerdicts } from "#db/detection/verdicts.ts";
import { MARKS } from "#model/kinds.ts";
import { type StoredVerdict, sampleRequest, storedVerdict } from "#model/verdict.ts";
import { describeClause } from "#stages/detection/exclusion/write-forms.ts";
import { pickSame, REMEMBERED_MS } from "#stages/detection/verdict/pick-same.ts";
import { maskVerdict } from "../alerts/mask-message.ts";
import { IsoTime, Text, toIso } from "../fields.ts";

export const Verdict = storedVerdict
  .extend({
    judgedAt: IsoTime,
    since: IsoTime.describe("Start of the window that was judged."),
    sample: sampleRequest.extend({ at: IsoTime }).nullable().describe("Text of a request. Escape it."),
  })
  .meta({ id: "Verdict", masked: maskVerdict });
export type Verdict = z.output<typeof Verdict>;

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
  verdicts: z
    .array(Verdict)
    .describe("The verdict at each look, the latest last. Empty if the alert was not judged."),
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
  const looks = (await readVerdicts(db, [spikeId])).get(spikeId) ?? [];
  return {
    verdicts: looks.map(toVerdict),
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
