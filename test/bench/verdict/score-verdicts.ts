import { VERDICT_CLASSES, VERDICTS, type VerdictClass, type VerdictWord } from "#model/kinds.ts";
import { type Judged, type Silenced, shareOf } from "./judge-world.ts";

/** Number of verdicts by what is true and what was said. */
export type Confusion = Readonly<Record<VerdictClass, Readonly<Record<VerdictWord, number>>>>;

export function countConfusion(judged: readonly Judged[]): Confusion {
  const row = () => Object.fromEntries(VERDICTS.map((said) => [said, 0])) as Record<VerdictWord, number>;
  const table = Object.fromEntries(VERDICT_CLASSES.map((truth) => [truth, row()])) as Record<
    VerdictClass,
    Record<VerdictWord, number>
  >;
  for (const { truth, verdict } of judged) table[truth][verdict.said] += 1;
  return table;
}

/** Returns the mean F1 of the classes that occur. Unclear is a miss. */
export function macroF1(table: Confusion): number {
  const scores = VERDICT_CLASSES.flatMap((name) => {
    const true_ = sum(Object.values(table[name]));
    if (true_ === 0) return [];
    const said = sum(VERDICT_CLASSES.map((truth) => table[truth][name]));
    return [(2 * table[name][name]) / (true_ + said)];
  });
  return sum(scores) / scores.length;
}

export interface VerdictScore {
  readonly alerts: number;
  readonly f1: number;
  readonly attackAsMisfire: number | null;
  readonly attackAsOther: number | null;
  readonly unclear: number | null;
  readonly misfireRecall: number | null;
  readonly misfirePrecision: number | null;
  /** Expected calibration error of the likeliest class, in ten bins. */
  readonly ece: number;
}

export function scoreVerdicts(judged: readonly Judged[]): VerdictScore {
  const attacks = judged.filter(({ truth }) => truth === "attack");
  const others: readonly string[] = ["scanner", "broken-client", "crawler"];
  const isMisfire = ({ verdict }: Judged) => verdict.said === "misfire";
  return {
    alerts: judged.length,
    f1: macroF1(countConfusion(judged)),
    attackAsMisfire: shareOf(attacks, isMisfire),
    attackAsOther: shareOf(attacks, ({ verdict }) => others.includes(verdict.said)),
    unclear: shareOf(judged, ({ verdict }) => verdict.said === "unclear"),
    misfireRecall: shareOf(
      judged.filter(({ truth }) => truth === "misfire"),
      isMisfire,
    ),
    misfirePrecision: shareOf(judged.filter(isMisfire), ({ truth }) => truth === "misfire"),
    ece: sum(binsOf(judged).map(({ alerts, said, was }) => (alerts / judged.length) * Math.abs(said - was))),
  };
}

/** Returns, for odds between so many tenths, what was said on average and how often it was so. */
export function binsOf(judged: readonly Judged[]): { said: number; was: number; alerts: number }[] {
  const bins = Map.groupBy(judged, ({ verdict }) => Math.floor(verdict.odds * 10));
  return [...bins.values()]
    .map((all) => ({
      said: sum(all.map(({ verdict }) => verdict.odds)) / all.length,
      was: shareOf(all, ({ truth, verdict }) => truth === verdict.likeliest) ?? 0,
      alerts: all.length,
    }))
    .sort((a, b) => a.said - b.said);
}

/** Returns the share of attacks that are called a misfire that lasts, of those that were looked at that late. */
export function persistingMisfires(judged: readonly Judged[]): number | null {
  const late = judged.filter(
    ({ truth, look }) => truth === "attack" && (look === "six-hours" || look === "day"),
  );
  return shareOf(late, ({ verdict }) => verdict.said === "misfire" && verdict.isLasting);
}

export function scoreExclusions(silenced: readonly Silenced[]) {
  const narrow = silenced.filter(({ form }) => form === "narrow");
  const mean = (values: readonly (number | null)[]) => {
    const known = values.flatMap((value) => value ?? []);
    return known.length === 0 ? null : sum(known) / known.length;
  };
  return {
    proposals: silenced.length,
    narrow: narrow.length,
    forAttacks: narrow.filter(({ truth }) => truth === "attack").length,
    misfire: mean(narrow.filter(({ truth }) => truth === "misfire").map((one) => one.misfire)),
    attack: mean(narrow.map((one) => one.attack)),
    attackAnyParameter: mean(narrow.map((one) => one.attackAnyParameter)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
