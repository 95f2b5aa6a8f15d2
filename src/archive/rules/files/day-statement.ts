/** The statement of an archive day: what its files must contain. */
import { z } from "zod";
import { type Disposition, ServiceError } from "#lib/errors.ts";
import { ARCHIVE_FORMAT, archiveFolder } from "#model/archive-layout.ts";
import { ARCHIVE_KINDS } from "#model/kinds.ts";

const wholeNumber = z.int().nonnegative();
/** A sum in decimal. */
const sum = z.string().regex(/^\d+$/);

/** One file of an archive day. `path` is relative to the archive folder and stays in it. */
const StatedFile = z.object({
  kind: z.enum(ARCHIVE_KINDS),
  path: z.string().regex(/^(?:events|records)\/zone=\d+\/day=\d{4}-\d\d-\d\d\/[0-9a-f]{16}\.parquet$/),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: wholeNumber,
  rows: wholeNumber,
  sum,
});
export type StatedFile = z.infer<typeof StatedFile>;

/** Returns what a statement says of a file of the manifest. */
export function toStatedFile({
  kind,
  path,
  sha256,
  bytes,
  rows,
  sum,
}: Omit<StatedFile, "sum"> & { readonly sum: bigint | string }): StatedFile {
  return { kind, path, sha256, bytes, rows, sum: String(sum) };
}

/**
 * Statement about an archive day, beside its events file, so that the proof travels with the data: the files with
 * their hashes, the events per hour and per rule, and the evidence of every hour.
 */
export const DayStatement = z.object({
  /** Version of the events file. */
  format: z.int().min(1).max(ARCHIVE_FORMAT),
  zoneId: wholeNumber,
  day: z.iso.date(),
  files: z.array(StatedFile),
  eventsPerHour: z.array(wholeNumber).length(24),
  /** Events by rule; '' if the rule is unknown or empty. */
  eventsPerRule: z.array(z.object({ ruleId: z.string(), events: wholeNumber, sum })),
  /** Events with a record. */
  records: wholeNumber,
  /** Records of no stored event, which are not in the archive. */
  recordsWithoutEvent: wholeNumber,
  /** The hours as coverage recorded them. */
  coverage: z.array(z.unknown()),
  /** Only in a copy of a day that was not in the archive yet and may still change. Hours are 0 to 23. */
  provisional: z
    .object({
      copiedAt: z.iso.datetime(),
      /** Hours of which every event was proven to be stored. */
      proven: z.array(wholeNumber),
      /** The other hours, with the state that coverage had recorded. */
      unproven: z.array(z.object({ hour: wholeNumber, state: z.string() })),
    })
    .optional(),
});
export type DayStatement = z.infer<typeof DayStatement>;

/** Returns a statement that was written, null if the text is none. */
export function readStatement(text: string | null): DayStatement | null {
  if (text === null) return null;
  try {
    return DayStatement.parse(JSON.parse(text));
  } catch {
    return null;
  }
}

/** Returns what is proven of a day that was copied at this time (epoch ms), by its recorded hours. */
export function toProvisional(
  coverage: readonly { readonly startsAt: string; readonly state: string }[],
  copiedAtMs: number,
): DayStatement["provisional"] {
  const states = new Map(coverage.map(({ startsAt, state }) => [Number(startsAt.slice(11, 13)), state]));
  const hours = Array.from({ length: 24 }, (_, hour) => ({ hour, state: states.get(hour) ?? "not watched" }));
  return {
    copiedAt: new Date(copiedAtMs).toISOString(),
    proven: hours.flatMap(({ hour, state }) => (state === "sealed" ? [hour] : [])),
    unproven: hours.filter(({ state }) => state !== "sealed"),
  };
}

/** Returns the sentence about a day that was not in the archive yet; null for an archive day. */
export function describeProvisional({ zoneId, day, provisional }: DayStatement): string | null {
  if (provisional === undefined) return null;
  const { copiedAt, proven, unproven } = provisional;
  const rest = unproven.map(({ hour, state }) => `${String(hour).padStart(2, "0")} (${state})`).join(", ");
  const open = unproven.length === 0 ? "" : `; not proven, so events may be missing: ${rest}`;
  return `${day} of zone ${zoneId} was copied at ${copiedAt}, before it was archived, and may still change. ${proven.length} of 24 hours are proven${open}`;
}

/** Engines that read a folder ignore names that begin with an underscore. */
export const STATEMENT_NAME = "_statement.json";

/** Returns the path of a day's statement, relative to the archive folder. */
export function statementPath(zoneId: number, day: string): string {
  return `${archiveFolder("events", zoneId, day)}/${STATEMENT_NAME}`;
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

export function writeStatement({ format, ...statement }: DayStatement): string {
  return `${JSON.stringify({ format, ...statement }, null, 1)}\n`;
}

interface ComparedSums {
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
export function compareSums(one: readonly ComparedSums[], other: readonly ComparedSums[]): DifferingSum[] {
  const keyOf = ({ hour, ruleId }: ComparedSums) => `${hour} ${ruleId}`;
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

/** Thrown when a written file is not what it should be. Nothing was published; the day stays as it was. */
export class ArchiveMismatchError extends ServiceError {
  override readonly name = "ArchiveMismatchError";
  readonly code = "ARCHIVE_MISMATCH";
  readonly disposition: Disposition = "give-up";
}
