/** The members of a rule by which the list is sorted and filtered. */
interface Arranged {
  readonly ruleId: string;
  readonly title: string | null;
  readonly blocked: number;
  readonly challenged: number;
  readonly logged: number;
  readonly total: number;
  readonly baseline: number | null;
  readonly openSpikeId: number | null;
}

const RULE_COLUMNS = ["rule", "blocked", "challenged", "logged", "total", "change"] as const;
export type RuleColumn = (typeof RULE_COLUMNS)[number];

export interface RuleOrder {
  readonly column: RuleColumn;
  readonly isDescending: boolean;
}

/** Reads `change` or `-change`, as the address has it. A minus is descending. */
export function readOrder(text: string | null): RuleOrder {
  const column = RULE_COLUMNS.find((name) => name === text?.replace(/^-/, ""));
  if (column === undefined) return { column: "total", isDescending: true };
  return { column, isDescending: text?.startsWith("-") === true };
}

/** Returns the order after a click on a column: the highest numbers and the first names come first. */
export function nextOrder({ column, isDescending }: RuleOrder, clicked: RuleColumn): string {
  const wanted = clicked === column ? !isDescending : clicked !== "rule";
  return `${wanted ? "-" : ""}${clicked}`;
}

/** How many times the usual count it is; null if the rule had no events before, or nothing is known. */
export function changeOf({ total, baseline }: Pick<Arranged, "total" | "baseline">): number | null {
  return baseline === null || baseline === 0 ? null : total / baseline;
}

/** Returns the rules whose number or title contains every word, in this order. Rules of equal value keep theirs. */
export function arrangeRules<One extends Arranged>(
  rules: readonly One[],
  { column, isDescending }: RuleOrder,
  { text, isSpiking }: { readonly text: string; readonly isSpiking: boolean },
): One[] {
  const words = text.toLowerCase().split(/\s+/);
  const sign = isDescending ? -1 : 1;
  return rules
    .filter(({ ruleId, title, openSpikeId }) => {
      const named = `${ruleId} ${title ?? ""}`.toLowerCase();
      return words.every((word) => named.includes(word)) && !(isSpiking && openSpikeId === null);
    })
    .sort((one, other) => sign * compare(one, other, column));
}

function compare(one: Arranged, other: Arranged, column: RuleColumn): number {
  if (column === "rule") return one.ruleId.localeCompare(other.ruleId, "en", { numeric: true });
  if (column !== "change") return one[column] - other[column];
  // A rule that was never active before has changed most.
  const value = (rule: Arranged) => changeOf(rule) ?? (rule.baseline === 0 ? Number.MAX_VALUE : -1);
  return value(one) - value(other);
}
