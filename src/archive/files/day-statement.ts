import { ARCHIVE_FORMAT, archiveFolder } from "../../model/archive-layout.ts";

/** One file of an archive day. */
export interface StatedFile {
  readonly kind: "events" | "records";
  /** Relative to the archive folder. */
  readonly path: string;
  readonly sha256: string;
  readonly bytes: number;
  readonly rows: number;
  /** The verification sum, in decimal. */
  readonly sum: string;
}

/**
 * What is claimed about an archive day, beside its events file, so that the proof travels with the data: the files with
 * their hashes, the events per hour and per rule, and the evidence of every hour.
 */
export interface DayStatement {
  readonly format: number;
  readonly zoneId: number;
  readonly day: string;
  readonly files: readonly StatedFile[];
  /** 24 numbers. */
  readonly eventsPerHour: readonly number[];
  /** By rule; '' if the rule is unknown or empty. */
  readonly eventsPerRule: readonly {
    readonly ruleId: string;
    readonly events: number;
    readonly sum: string;
  }[];
  /** Events with a record, and records of no stored event. */
  readonly records: number;
  readonly recordsWithoutEvent: number;
  /** The hours as coverage recorded them. */
  readonly coverage: readonly unknown[];
}

/** Engines that read a folder ignore names that begin with an underscore. */
const NAME = "_statement.json";

/** Returns the path of a day's statement, relative to the archive folder. */
export function statementPath(zoneId: number, day: string): string {
  return `${archiveFolder("events", zoneId, day)}/${NAME}`;
}

interface Sums {
  readonly hour: number;
  readonly ruleId: string;
  readonly events: number;
  readonly sum: bigint;
}

/** Returns the number of events of each hour. */
export function countHours(sums: readonly Sums[]): number[] {
  const hours = Array.from({ length: 24 }, () => 0);
  for (const { hour, events } of sums) hours[hour] = (hours[hour] ?? 0) + events;
  return hours;
}

/** Returns number and sum of the events of each rule, by rule. */
export function countRules(sums: readonly Sums[]): DayStatement["eventsPerRule"] {
  const rules = Map.groupBy(sums, ({ ruleId }) => ruleId);
  return [...rules]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .map(([ruleId, ofRule]) => ({
      ruleId,
      events: ofRule.reduce((total, { events }) => total + events, 0),
      sum: String(addSums(ofRule)),
    }));
}

export function addSums(sums: readonly Pick<Sums, "sum">[]): bigint {
  return sums.reduce((total, { sum }) => total + sum, 0n);
}

export function writeStatement(statement: Omit<DayStatement, "format">): string {
  return `${JSON.stringify({ format: ARCHIVE_FORMAT, ...statement }, null, 1)}\n`;
}
