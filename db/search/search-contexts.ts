import type { MergedGroup, MergedTally, TallyMerge } from "./merge-tallies.ts";
import type { GroupTally } from "./search-group-parts.ts";
import { TALLIED_COLUMNS, type TalliedColumn } from "./tally-day.ts";

/** The events of one group beside what they are grouped by. */
export interface GroupContext {
  /** Of most of the group's events; of several the first, by UTF-16 code units. */
  readonly country: string;
  readonly asn: string;
  readonly blocked: number;
  readonly challenged: number;
  readonly logged: number;
  /** Sorted by UTF-16 code units, joined by commas. */
  readonly features: string;
  readonly ruleIds: string;
}

/** The contexts of `count` groups, of which the tallies were read one by one. */
export function toContexts(count: number, tallies: readonly GroupTally[]): GroupContext[] {
  const counts = Array.from({ length: count }, () => new Map<string, Map<string, number>>());
  for (const { at, kind, text, total } of tallies) {
    const ofGroup = counts[at - 1];
    const ofKind = ofGroup?.get(kind) ?? new Map<string, number>();
    ofKind.set(text, total);
    ofGroup?.set(kind, ofKind);
  }
  return counts.map((ofGroup) => {
    const of = (kind: TalliedColumn) => ofGroup.get(kind) ?? new Map<string, number>();
    const action = (text: string) => of("action").get(text) ?? 0;
    return {
      country: mostCommon([...of("country")]),
      asn: mostCommon([...of("asn")]),
      blocked: action("block"),
      challenged: action("challenge"),
      logged: action("log"),
      features: [...of("feature").keys()].sort().join(","),
      ruleIds: [...of("rule_id").keys()].sort().join(","),
    };
  });
}

/** The contexts of groups by the column, from what their days and loose events add up to. */
export function mergeContexts(
  merge: TallyMerge,
  column: number,
  groups: readonly MergedGroup[],
): GroupContext[] {
  const contexts: GroupContext[] = [];
  const [feature, ruleId, asn, country, action] = TALLIED_COLUMNS.map((_, index) => merge.texts(index));
  const inOrder = [feature, ruleId].map((texts = []) =>
    Array.from(texts, (_, code) => code).sort((one, other) =>
      (texts[one] as string) < (texts[other] as string) ? -1 : 1,
    ),
  );
  const actions = new Map(action?.map((text, code) => [text, code]));
  merge.tally(groups, (at, tallies) => {
    const { text, total } = groups[at] as MergedGroup;
    const own = <T>(index: number, known: T, read: (tally: MergedTally) => T): T =>
      index === column ? known : read(tallies[index] as MergedTally);
    const most = (index: number, texts: readonly string[] = []) =>
      own(index, text, (tally) => mostMet(tally, texts));
    const all = (index: number, texts: readonly string[] = []) =>
      own(index, text, ({ counts }) => {
        const met: string[] = [];
        for (const code of inOrder[index] ?? []) {
          if ((counts[code] as number) > 0) met.push(texts[code] as string);
        }
        return met.join(",");
      });
    const acted = (name: string) =>
      own(4, text === name ? total : 0, ({ counts }) => counts[actions.get(name) ?? -1] ?? 0);
    contexts.push({
      country: most(3, country),
      asn: most(2, asn),
      blocked: acted("block"),
      challenged: acted("challenge"),
      logged: acted("log"),
      features: all(0, feature),
      ruleIds: all(1, ruleId),
    });
  });
  return contexts;
}

/** As `mostCommon`, without a pair for each of the thousands of networks that a group may meet. */
function mostMet({ codes, counts }: MergedTally, texts: readonly string[]): string {
  let [most, text] = [0, ""];
  for (const code of codes) {
    const count = counts[code] as number;
    if (count < most) continue;
    const other = texts[code] as string;
    if (count > most || other < text) [most, text] = [count, other];
  }
  return text;
}

function mostCommon(counts: readonly (readonly [text: string, count: number])[]): string {
  let most: readonly [text: string, count: number] = ["", 0];
  for (const pair of counts) {
    if (pair[1] > most[1] || (pair[1] === most[1] && pair[0] < most[0])) most = pair;
  }
  return most[0];
}
