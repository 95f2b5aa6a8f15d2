import type { LateMinutes } from "#alerts/rules/backtest/replay-alerts.ts";
import { DEFAULT_Z, FLOOR } from "#detection/rules/detection-settings.ts";
import { DAY_MS } from "#lib/units.ts";
import type { Span } from "#model/horizon.ts";
import { type FlagReader, parseTime, TIME_RULE } from "../edge/flag-reader.ts";
import { readZone } from "../options/read-options.ts";

export interface BacktestFlags {
  readonly counts?: string;
  readonly events?: string;
  readonly sources?: true;
  readonly from?: string;
  readonly zone?: string;
  readonly rule?: string;
  readonly days?: string;
  readonly z?: string;
  readonly floor?: string;
  readonly start?: string;
  readonly end?: string;
  readonly late?: string;
  readonly alerts?: string;
  readonly json?: true;
}

/** The source of a replay: a file of counts or of events, stored events, or the stored counts of a zone. Minutes are numbered since the epoch. */
export type BacktestSource =
  | {
      readonly kind: "file";
      readonly path: string;
      readonly startMinute?: number;
      readonly endMinute?: number;
    }
  | { readonly kind: "events"; readonly path: string; readonly late: LateMinutes | null }
  | { readonly kind: "sources"; readonly zoneId: number | undefined; readonly span: Span }
  | {
      readonly kind: "store";
      readonly zoneId: number;
      readonly ruleId: string | undefined;
      readonly days: number;
    };

const [MIN_Z, MAX_Z] = [0.5, 20];
const MAX_FLOOR = 1_000_000;
const MAX_DAYS = 400;
/** A number of up to eleven digits is in seconds, as in the file. */
const SECONDS = /^\d{1,11}$/;

/** Returns undefined if a flag is wrong; the mistakes are then noted in `read`. */
export function readBacktestFlags(
  read: FlagReader,
  flags: BacktestFlags,
  nowMs: number,
): { source: BacktestSource; z: number; floor: number } | undefined {
  const z = readZ(read, flags.z);
  const floor = readFloor(read, flags.floor);
  const source =
    flags.events !== undefined
      ? readEventsFlag(read, flags, nowMs)
      : flags.sources === true
        ? readSources(read, flags, nowMs)
        : flags.counts === undefined
          ? readStored(read, flags)
          : readFile(read, flags, nowMs);
  if (flags.late !== undefined && flags.events === undefined)
    read.wrong("late", flags.late, "left out without --events");
  read.finish();
  return z === undefined || floor === undefined || source === undefined ? undefined : { source, z, floor };
}

function readZ(read: FlagReader, text: string | undefined): number | undefined {
  if (text === undefined) return DEFAULT_Z;
  const z = /^\d{1,2}(?:\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
  return z >= MIN_Z && z <= MAX_Z ? z : read.wrong("z", text, `a number from ${MIN_Z} to ${MAX_Z}`);
}

function readFloor(read: FlagReader, text: string | undefined): number | undefined {
  if (text === undefined) return FLOOR;
  const floor = /^\d{1,7}$/.test(text) ? Number(text) : Number.NaN;
  return floor >= 1 && floor <= MAX_FLOOR
    ? floor
    : read.wrong("floor", text, `a whole number from 1 to ${MAX_FLOOR}`);
}

function readEventsFlag(read: FlagReader, flags: BacktestFlags, nowMs: number): BacktestSource | undefined {
  for (const other of ["counts", "zone", "rule", "days", "start", "end"] as const)
    if (flags[other] !== undefined) read.wrong(other, flags[other], "left out if --events is given");
  const path = read.required("events", flags.events, "a CSV file");
  const late = readLate(read, flags.late, nowMs);
  return path === undefined || late === undefined ? undefined : { kind: "events", path, late };
}

/** Returns null without a span, and undefined for a wrong one. */
function readLate(read: FlagReader, text: string | undefined, nowMs: number): LateMinutes | null | undefined {
  if (text === undefined) return null;
  const [from, to, ...more] = text.split("/").map((part) => toMinute(part, nowMs));
  if (from == null || to == null || more.length > 0 || to <= from)
    return read.wrong("late", text, `FROM/TO, each epoch seconds or ${TIME_RULE}, and TO later than FROM`);
  return { from, to };
}

function readSources(read: FlagReader, flags: BacktestFlags, nowMs: number): BacktestSource {
  for (const other of ["counts", "rule", "days", "start", "end", "z", "floor"] as const)
    if (flags[other] !== undefined) read.wrong(other, flags[other], "left out if --sources is given");
  const zoneId = flags.zone === undefined ? undefined : readZone(read, { zone: flags.zone }, true);
  const from = flags.from === undefined ? nowMs - 7 * DAY_MS : read.time("from", flags.from);
  if (from !== undefined && from >= nowMs) read.wrong("from", flags.from, "in the past");
  return { kind: "sources", zoneId, span: { from: from ?? 0, to: nowMs } };
}

function readFile(read: FlagReader, flags: BacktestFlags, nowMs: number): BacktestSource | undefined {
  for (const other of ["zone", "rule", "days"] as const)
    if (flags[other] !== undefined) read.wrong(other, flags[other], "left out if --counts is given");
  const path = read.required("counts", flags.counts, "a CSV file");
  const startMinute = readMinute(read, "start", flags.start, nowMs);
  const endMinute = readMinute(read, "end", flags.end, nowMs);
  if (startMinute !== undefined && endMinute !== undefined && endMinute <= startMinute)
    read.wrong("end", flags.end, "later than --start");
  if (path === undefined) return undefined;
  return {
    kind: "file",
    path,
    ...(startMinute === undefined ? {} : { startMinute }),
    ...(endMinute === undefined ? {} : { endMinute }),
  };
}

function readStored(read: FlagReader, flags: BacktestFlags): BacktestSource | undefined {
  if (flags.zone === undefined)
    return read.wrong("counts", undefined, "a CSV file, unless --events or --zone is given");
  for (const other of ["start", "end"] as const)
    if (flags[other] !== undefined) read.wrong(other, flags[other], "left out with --zone; use --days");
  const zoneId = readZone(read, { zone: flags.zone }, true);
  const days = flags.days === undefined ? 7 : read.integer("days", flags.days, DAYS_RULE);
  if (days !== undefined && (days < 1 || days > MAX_DAYS)) read.wrong("days", flags.days, DAYS_RULE);
  return zoneId === undefined || days === undefined
    ? undefined
    : { kind: "store", zoneId, ruleId: flags.rule, days };
}

const DAYS_RULE = `a whole number of days from 1 to ${MAX_DAYS}`;

function readMinute(
  read: FlagReader,
  flag: string,
  text: string | undefined,
  nowMs: number,
): number | undefined {
  if (text === undefined) return undefined;
  return toMinute(text, nowMs) ?? read.wrong(flag, text, `epoch seconds, ${TIME_RULE}`);
}

function toMinute(text: string, nowMs: number): number | null {
  const at = SECONDS.test(text) ? Number(text) * 1_000 : parseTime(text, nowMs);
  return at === null ? null : Math.ceil(at / 60_000);
}
