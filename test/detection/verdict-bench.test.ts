import { expect, test } from "vitest";
import type { VerdictClass, VerdictWord } from "#model/kinds.ts";
import { drawWorld, episodeOf } from "../bench/verdict/draw-world.ts";
import type { Judged, Silenced } from "../bench/verdict/judge-world.ts";
import {
  binsOf,
  countConfusion,
  macroF1,
  persistingMisfires,
  scoreExclusions,
  scoreVerdicts,
} from "../bench/verdict/score-verdicts.ts";

function judged(
  truth: VerdictClass,
  said: VerdictWord,
  more: Partial<Judged> & { odds?: number } = {},
): Judged {
  const { odds = 0.8, look = "first" } = more;
  const likeliest = said === "unclear" ? truth : said;
  const verdict = { said, likeliest, odds, isLasting: look === "day", classes: {}, features: {} };
  return {
    lacks: "nothing",
    kind: "x",
    truth,
    isIncident: false,
    ...more,
    look,
    verdict,
  } as unknown as Judged;
}

const some = [
  judged("attack", "attack"),
  judged("attack", "attack"),
  judged("attack", "misfire"),
  judged("misfire", "misfire"),
  judged("misfire", "unclear"),
  judged("scanner", "scanner"),
];

test("the mean F1 is that of the classes that occur, and unclear is a miss", () => {
  const table = countConfusion(some);
  expect(table.attack).toMatchObject({ attack: 2, misfire: 1, unclear: 0 });
  expect(macroF1(table)).toBeCloseTo((4 / 5 + 2 / 4 + 1) / 3);
});

test("attacks that are called a misfire, recall and abstention are shares of their own totals", () => {
  const score = scoreVerdicts(some);
  expect(score.attackAsMisfire).toBeCloseTo(1 / 3);
  expect([score.misfireRecall, score.misfirePrecision]).toEqual([0.5, 0.5]);
  expect(score.unclear).toBeCloseTo(1 / 6);
  // Said .8 each, and five of six are so.
  expect(score.ece).toBeCloseTo(5 / 6 - 0.8);
});

test("the calibration compares the odds of the likeliest class with how often it was true", () => {
  const bins = binsOf([...some, judged("attack", "attack", { odds: 0.55 })]);
  expect(bins.map(({ alerts }) => alerts)).toEqual([1, 6]);
  expect(bins[0]).toMatchObject({ said: 0.55, was: 1 });
});

test("a misfire persists only if the last verdict says so", () => {
  expect(persistingMisfires(some)).toBeNull();
  const late = [
    judged("attack", "misfire", { look: "day" }),
    judged("attack", "attack", { look: "six-hours" }),
  ];
  expect(persistingMisfires([...some, ...late])).toBe(0.5);
});

test("only narrow exclusions are scored, and those for attacks are counted", () => {
  const one = (more: Partial<Silenced>): Silenced => {
    const base = {
      truth: "misfire",
      form: "narrow",
      misfire: 1,
      attack: 0,
      attackAnyParameter: 0.1,
    } as const;
    return { ...base, ...more };
  };
  const score = scoreExclusions([
    one({}),
    one({ misfire: 0.9 }),
    one({ form: "partial", misfire: 0 }),
    one({ truth: "attack" }),
  ]);
  expect(score).toMatchObject({ proposals: 4, narrow: 3, forAttacks: 1, misfire: 0.95, attack: 0 });
  expect(score.attackAnyParameter).toBeCloseTo(0.1);
});

test("a world is the same for the same seed, has a week without episodes, and events that name theirs", () => {
  const world = drawWorld(3, 1, 0);
  const again = drawWorld(3, 1, 0);
  expect(again.events.length).toBe(world.events.length);
  expect(again.events.at(-1)).toEqual(world.events.at(-1));
  expect(drawWorld(3, 2, 0).events.length).not.toBe(world.events.length);
  const [start = 0] = world.events.map(({ at }) => at);
  const early = world.events.filter(({ at }) => at < start + 6 * 86_400_000);
  const kinds = new Set(early.map(({ logId }) => world.episodes[episodeOf(logId)]?.kind));
  expect(kinds).toEqual(new Set(["everyday", "everyday probe"]));
  expect(world.episodes.filter(({ truth }) => truth === "attack")).toHaveLength(8);
});

test("an attacker of level 3 has sessions and an own referer, and one of level 2 has none", () => {
  const forged = (level: 2 | 3) => {
    const { events, episodes } = drawWorld(3, 1, level);
    const attack = events.filter(({ logId }) => episodes[episodeOf(logId)]?.truth === "attack");
    const share = (isSo: (one: (typeof attack)[number]) => boolean) =>
      attack.filter(isSo).length / attack.length;
    const isSession = share(({ request }) => request?.hasSession === true);
    return [isSession, share(({ request }) => request?.hasOwnReferer === true)];
  };
  expect(forged(2)).toEqual([0, 0]);
  for (const share of forged(3)) expect(share).toBeGreaterThan(0.5);
});
