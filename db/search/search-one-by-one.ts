/** How far it goes to read events one by one in this process; what is more Postgres counts from events. */
export interface OneByOne {
  /** Of days that are not closed: as many take about 100 ms and as many hundred bytes each. */
  readonly looseEvents: number;
  /** By what closed days note of them: as many take a second and 16 bytes each. */
  readonly codedEvents: number;
}
export const MOST_ONE_BY_ONE: OneByOne = { looseEvents: 150_000, codedEvents: 20_000_000 };
