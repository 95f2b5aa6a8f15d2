interface Sums {
  readonly hour: number;
  readonly ruleId: string;
  readonly events: number;
  readonly sum?: bigint;
}

/** A rule's hour in which two counts of the same day differ; 0 where one of them has no events. */
export interface DifferingSum {
  readonly hour: number;
  readonly ruleId: string;
  readonly one: number;
  readonly other: number;
}

/** Returns the rules' hours that differ. Sums are compared where both sides have them. */
export function compareSums(one: readonly Sums[], other: readonly Sums[]): DifferingSum[] {
  const keyOf = ({ hour, ruleId }: Sums) => `${hour} ${ruleId}`;
  const others = new Map(other.map((sums) => [keyOf(sums), sums]));
  const differing: DifferingSum[] = [];
  for (const sums of one) {
    const { hour, ruleId, events, sum } = sums;
    const found = others.get(keyOf(sums));
    others.delete(keyOf(sums));
    const isEqual =
      found?.events === events && (sum === undefined || found.sum === undefined || sum === found.sum);
    if (!isEqual) differing.push({ hour, ruleId, one: events, other: found?.events ?? 0 });
  }
  return [
    ...differing,
    ...Array.from(others.values(), ({ hour, ruleId, events }) => ({ hour, ruleId, one: 0, other: events })),
  ];
}
