/** The events of one rule in one zone. */
export interface SeriesKey {
  readonly zoneId: number;
  readonly ruleId: string;
}

/** Returns the key as a text, for maps and sets. */
export function keyOf({ zoneId, ruleId }: SeriesKey): string {
  return `${zoneId}/${ruleId}`;
}
