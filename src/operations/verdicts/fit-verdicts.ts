import { setImmediate } from "node:timers/promises";
import { z } from "zod";
import { insertWeights, type MarkedVerdict, readMarkedVerdicts } from "#db/detection/said-verdicts.ts";
import { readFittedWeights } from "#db/detection/verdicts.ts";
import { formatShare } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { VERDICT_CLASSES, VERDICT_FEATURES, type VerdictClass } from "#model/kinds.ts";
import type { Features } from "#model/verdict.ts";
import { FEATURE_WORDS } from "#model/verdict-words.ts";
import { fitWeights, type Marked } from "#stages/detection/verdict/fit-weights.ts";
import { oddsOf } from "#stages/detection/verdict/judge-verdict.ts";
import { SHIPPED_WEIGHTS, type Weights, weights } from "#stages/detection/verdict/weights.ts";
import { Name, requireEveryZone } from "../fields.ts";
import { defineChange } from "../operation.ts";
import { Refusal } from "../refusal.ts";

const READ_MS = 400 * DAY_MS;
const ENOUGH_MARKS = 20;
/** The newest marks: one fit of these takes a third of a second. */
const MOST_FITTED = 200;
const FOLDS = 5;
const MOST_CHANGES = 10;

const count = z.number().int();
const Rated = z.object({ right: count, attacksCalledMisfire: count });
type Rated = z.output<typeof Rated>;
const Change = z.object({
  number: Name.describe("One of the twelve numbers, or start."),
  class: z.enum(VERDICT_CLASSES),
  from: z.number(),
  to: z.number(),
});
type Change = z.output<typeof Change>;

export const fitVerdicts = defineChange({
  name: "verdict.fit",
  summary: "Fit the weights of verdicts to the marks of people",
  description: `Only shows what would change, unless \`apply\` is set. The shipped table is the prior. A fit needs ${ENOUGH_MARKS} marks with a reason, of two classes or more. Stored verdicts stay as they are.`,
  http: ["POST", "/api/v1/verdicts/fit"],
  tag: "Alerts",
  scope: "admin",
  refuses: [409],
  input: z
    .strictObject({
      apply: z.boolean().default(false).describe("Use the fitted table from now on."),
      reset: z.boolean().default(false).describe("Return to the table that Longwatch ships."),
    })
    .refine(({ apply, reset }) => !(apply && reset), {
      path: ["reset"],
      error: "must be given without apply",
    }),
  output: z.object({
    isApplied: z.boolean(),
    marks: z.record(z.enum(VERDICT_CLASSES), count).describe("The marks that were used."),
    before: Rated.describe("With the table in use."),
    after: Rated.describe("With the new table. A fifth of the marks is judged by a fit to the others."),
    items: z.array(Change).describe("The weights that change most, in log odds."),
  }),
  example: { apply: true },
  command: {
    examples: ["verdict fit", "verdict fit --apply --by alice", "verdict fit --reset"],
    help: "Nothing changes without --apply or --reset. Stored verdicts stay as they are.",
    columns: [
      { head: "NUMBER", get: ({ number }) => FEATURE_WORDS[number as keyof typeof FEATURE_WORDS] ?? number },
      { head: "CLASS", get: (change) => change.class },
      { head: "NOW", get: ({ from }) => from.toFixed(2) },
      { head: "NEW", get: ({ to }) => to.toFixed(2) },
    ],
    empty: "No weight changes.",
    say: ({ marks, before, after, isApplied }) => {
      const all = Object.values(marks).reduce((sum, number) => sum + number, 0);
      const rated = ({ right, attacksCalledMisfire }: Rated) =>
        `${right} of ${all} right (${formatShare(right / Math.max(all, 1))}), ${attacksCalledMisfire} attacks called misfire`;
      return `Marks: ${VERDICT_CLASSES.map((name) => `${marks[name]} ${name}`).join(", ")}.
Table in use: ${rated(before)}.
New table: ${rated(after)}, each judged by a fit to the other marks.
${isApplied ? "Verdicts use the new table from now on." : "Nothing was changed. --apply uses the new table."}\n`;
    },
  },
  run: async ({ caller, tx, now }, { apply, reset }) => {
    requireEveryZone(caller);
    const rows = await readMarkedVerdicts(tx, { sinceMs: now - READ_MS, zoneIds: null });
    const marked = rows.flatMap(toMarked).slice(0, MOST_FITTED);
    const classes = new Set(marked.map(({ mark }) => mark)).size;
    if (!reset && (marked.length < ENOUGH_MARKS || classes < 2))
      throw new Refusal(409, {
        slug: "too-few-marks",
        detail: `A fit needs ${ENOUGH_MARKS} marks with a reason, of two classes or more. Marked alerts with a verdict: ${marked.length}, of classes: ${classes}. Mark more alerts: alerts mark 17 --as misfire`,
      });
    const stored = weights.safeParse(await readFittedWeights(tx)).data;
    const inUse = stored ?? SHIPPED_WEIGHTS;
    const fitted = reset ? SHIPPED_WEIGHTS : fitWeights(marked, SHIPPED_WEIGHTS);
    const isApplied = apply || (reset && stored !== undefined);
    const row = { fittedAt: new Date(now), fittedBy: caller.name, marks: marked.length };
    if (isApplied) await insertWeights(tx, { ...row, weights: reset ? null : fitted });
    const numberOf = (name: VerdictClass) => marked.filter(({ mark }) => mark === name).length;
    const details = {
      marks: Object.fromEntries(VERDICT_CLASSES.map((name) => [name, numberOf(name)])) as Numbers,
      before: rate(marked, () => inUse),
      after: rate(marked, reset ? () => fitted : await fitOthers(marked)),
    };
    const action = reset ? "verdict.reset" : "verdict.fitted";
    return {
      output: { isApplied, ...details, items: listChanges(inUse, fitted) },
      audit: isApplied ? { action, subject: "weights of verdicts", details } : null,
    };
  },
});

type Numbers = Record<VerdictClass, number>;

/** Noise is no class: such a mark teaches nothing. */
function toMarked({ mark, features }: MarkedVerdict): Marked[] {
  if (mark === "noise") return [];
  const values = VERDICT_FEATURES.map((name) => [name, features[name].value]);
  return [{ mark, features: Object.fromEntries(values) as Features }];
}

/** Returns the table for the mark at an index, which was fitted without that mark. Other requests are served in between. */
async function fitOthers(marked: readonly Marked[]): Promise<(index: number) => Weights> {
  const tables: Weights[] = [];
  for (let fold = 0; fold < FOLDS; fold += 1) {
    await setImmediate();
    const others = marked.filter((_one, index) => index % FOLDS !== fold);
    tables.push(fitWeights(others, SHIPPED_WEIGHTS));
  }
  return (index) => tables[index % FOLDS] ?? SHIPPED_WEIGHTS;
}

function rate(marked: readonly Marked[], weightsOf: (index: number) => Weights): Rated {
  const judged = marked.map(({ features, mark }, index) => {
    const odds = oddsOf(features, weightsOf(index));
    return { mark, said: VERDICT_CLASSES.toSorted((one, other) => odds[other] - odds[one])[0] };
  });
  return {
    right: judged.filter(({ mark, said }) => mark === said).length,
    attacksCalledMisfire: judged.filter(({ mark, said }) => mark === "attack" && said === "misfire").length,
  };
}

function listChanges(now: Weights, next: Weights): Change[] {
  const all = (["start", ...VERDICT_FEATURES] as const).flatMap((number) => {
    const [from, to] =
      number === "start" ? [now.start, next.start] : [now.features[number], next.features[number]];
    return VERDICT_CLASSES.map((name) => ({ number, class: name, from: from[name], to: to[name] }));
  });
  const sizeOf = ({ from, to }: Change) => Math.abs(to - from);
  const changed = all.filter((one) => sizeOf(one) >= 0.01);
  return changed.sort((one, other) => sizeOf(other) - sizeOf(one)).slice(0, MOST_CHANGES);
}
