import { HOUR_MS } from "../../../src/lib/units.ts";

/** How long the platform keeps events. */
const KEPT_MS = 72 * HOUR_MS;

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
}

export type Witness = ReturnType<typeof createWitness>;

/** Returns a record of which events the answers have shown or counted truthfully, and of every false time in them. */
export function createWitness() {
  const testimonies = new Map<string, Testimony>();
  const falseTimes = new Map<string, Set<number>>();
  const of = ({ logId, timestamp }: Seen): Testimony => {
    const known = testimonies.get(logId);
    if (known !== undefined) return known;
    const made: Testimony = { timestamp, shownAt: null, countedAt: null, measuredAt: null };
    testimonies.set(logId, made);
    return made;
  };
  return {
    /** By log id. */
    testimonies: testimonies as ReadonlyMap<string, Readonly<Testimony>>,
    /** By log id, the times that are not the event's own. */
    falseTimes: falseTimes as ReadonlyMap<string, ReadonlySet<number>>,
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
  };
}
