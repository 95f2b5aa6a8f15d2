import { HOUR_MS } from "#lib/units.ts";
import type { Dimension } from "./lie.ts";

/** How long the platform keeps events. */
const KEPT_MS = 72 * HOUR_MS;
/** In its last minutes the lower count of an hour proves nothing. */
const EXPIRING_MS = 15 * 60_000;
/** An event may appear this long after its time. */
const SETTLE_MS = 15 * 60_000;

interface Seen {
  readonly logId: string;
  readonly timestamp: number;
}

/** When an event was last shown or counted truthfully, by the platform's clock. */
interface Testimony {
  readonly timestamp: number;
  shownAt: number | null;
  countedAt: number | null;
  /** When a day's metric counted the event; the metric does not say in which hour. */
  measuredAt: number | null;
  /**
   * When the counts gave the event away although they hid others of its rule and hour: they counted it, and counted
   * more than the latest search of the hour showed, or another number than before. Null after they ceased to count it.
   */
  givenAwayAt: number | null;
}

/** A line of an answer: an event, and its rule and its time as the answer gives them. */
interface Line {
  readonly of: Seen;
  readonly entry: { readonly fields: Readonly<Record<string, string>> };
  readonly timestamp: number;
  readonly isTrue: boolean;
}

interface Answered {
  readonly zone: number;
  readonly from: number;
  readonly to: number;
  readonly now: number;
}

export type Witness = ReturnType<typeof createWitness>;

/** Returns a record of which events the answers have shown or counted truthfully, and of every falsehood in them. */
export function createWitness() {
  const testimonies = new Map<string, Testimony>();
  const falseTimes = new Map<string, Set<number>>();
  const falseValues = new Map<string, Set<Dimension>>();
  const phantomIds = new Set<string>();
  const foreignIds = new Set<string>();
  const of = ({ logId, timestamp }: Seen): Testimony => {
    const known = testimonies.get(logId);
    if (known !== undefined) return known;
    const made: Testimony = {
      timestamp,
      shownAt: null,
      countedAt: null,
      measuredAt: null,
      givenAwayAt: null,
    };
    testimonies.set(logId, made);
    return made;
  };
  // By zone and hour, the number of events of each rule.
  const searched = new Map<string, ReadonlyMap<string, number>>();
  const counted = new Map<string, ReadonlyMap<string, number>>();
  const givenAway = new Map<string, Set<string>>();
  const forget = (logId: string) => {
    const testimony = testimonies.get(logId);
    if (testimony !== undefined) testimony.givenAwayAt = null;
  };
  return {
    /** A complete search without filters. */
    search(answered: Answered, lines: readonly Line[]): void {
      for (const [hour, key] of wholeHours(answered)) {
        if (hour + HOUR_MS + SETTLE_MS > answered.now) continue;
        searched.set(key, sumRules(lines.filter(({ timestamp }) => startOfHour(timestamp) === hour)));
      }
    },
    /** Complete counts by rule, hour by hour. The service compares an hour only after a search of the whole hour. */
    compare(answered: Answered, lines: readonly Line[]): void {
      const byHour = Map.groupBy(lines, ({ timestamp }) => startOfHour(timestamp));
      for (const [hour, key] of wholeHours(answered)) {
        const shown = searched.get(key);
        if (shown === undefined || hour < answered.now - KEPT_MS + EXPIRING_MS) continue;
        const [before, told] = [counted.get(key), byHour.get(hour) ?? []];
        const now = sumRules(told);
        const isTelling = (rule: string) => {
          const count = now.get(rule) ?? 0;
          return (
            count > (shown.get(rule) ?? 0) || (before !== undefined && count !== (before.get(rule) ?? 0))
          );
        };
        const earlier = givenAway.get(key) ?? new Set();
        const given = told.filter(({ of: { logId }, entry, isTrue }) => {
          return isTrue && (earlier.has(logId) || isTelling(entry.fields["ruleId"] ?? ""));
        });
        const ids = new Set(given.map((line) => line.of.logId));
        for (const line of given) of(line.of).givenAwayAt = answered.now;
        for (const id of earlier) if (!ids.has(id)) forget(id);
        givenAway.set(key, ids);
        counted.set(key, now);
      }
    },
    /** By log id. */
    testimonies: testimonies as ReadonlyMap<string, Readonly<Testimony>>,
    /** By log id, the times that are not the event's own. */
    falseTimes: falseTimes as ReadonlyMap<string, ReadonlySet<number>>,
    /** By log id, the dimensions of which an answer showed a false value. */
    falseValues: falseValues as ReadonlyMap<string, ReadonlySet<Dimension>>,
    /** Log ids that answers showed and that are no events of the zone: invented ones and `foreignIds`. */
    phantomIds: phantomIds as ReadonlySet<string>,
    /** Log ids of another zone's events that answers showed as the zone's own. */
    foreignIds: foreignIds as ReadonlySet<string>,
    show(event: Seen, now: number): void {
      of(event).shownAt = now;
    },
    /** Counts events truthfully, except in an hour that the platform has begun to forget. */
    count(event: Seen, now: number): void {
      if (event.timestamp - (event.timestamp % HOUR_MS) > now - KEPT_MS) of(event).countedAt = now;
    },
    measure(event: Seen, now: number): void {
      of(event).measuredAt = now;
    },
    mislead(logId: string, timestamp: number): void {
      const times = falseTimes.get(logId) ?? new Set();
      falseTimes.set(logId, times.add(timestamp));
    },
    invent(logId: string): void {
      phantomIds.add(logId);
    },
    confuse(logId: string): void {
      phantomIds.add(logId);
      foreignIds.add(logId);
    },
    falsify(logId: string, fields: readonly Dimension[]): void {
      falseValues.set(logId, new Set([...(falseValues.get(logId) ?? []), ...fields]));
    },
  };
}

function startOfHour(at: number): number {
  return at - (at % HOUR_MS);
}

/** Returns the hours that lie wholly in the window, each with its key. */
function wholeHours({ zone, from, to }: Answered): [hour: number, key: string][] {
  const hours: [number, string][] = [];
  for (let hour = Math.ceil(from / HOUR_MS) * HOUR_MS; hour + HOUR_MS <= to; hour += HOUR_MS)
    hours.push([hour, `${zone} ${hour}`]);
  return hours;
}

function sumRules(lines: readonly Line[]): Map<string, number> {
  const byRule = Map.groupBy(lines, ({ entry }) => entry.fields["ruleId"] ?? "");
  return new Map([...byRule].map(([rule, of]) => [rule, of.length]));
}
