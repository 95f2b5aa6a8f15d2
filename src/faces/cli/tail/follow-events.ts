/** The members that identify and order an event. */
export interface Followable {
  readonly occurredAt: number;
  readonly logId: string;
}

/** Reads a zone's events from a time on, oldest first, behind `after` if it is given. */
export type ReadOnward<Event extends Followable> = (
  zoneId: number,
  from: number,
  after: Event | null,
) => Promise<readonly Event[]>;

/** A new event is looked for from so long before the newest one of its zone. */
const NEAR_MS = 15_000;
/** A late event is looked for from so long before the newest one of its zone, once in `SWEEP_POLLS`. */
export const OVERLAP_MS = 2 * 60_000;
const SWEEP_POLLS = 10;

interface Followed {
  newestAt: number;
  /** Time of each event that was returned and may be read again. */
  readonly seen: Map<string, number>;
}

/**
 * Follows the events of zones from a time on. Each poll yields, in order of time, the events that no poll has yielded. An
 * event that is stored up to two minutes late is yielded when it is found. After a failed read the next poll goes on.
 */
export function createFollower<Event extends Followable>(zoneIds: readonly number[], from: number) {
  const zones = new Map<number, Followed>();
  let untilSweep = 0;

  function watch(ids: readonly number[]): void {
    for (const id of ids) if (!zones.has(id)) zones.set(id, { newestAt: from, seen: new Map() });
  }

  async function* readZone(
    zoneId: number,
    zone: Followed,
    read: ReadOnward<Event>,
    backMs: number,
  ): AsyncGenerator<Event[]> {
    const start = Math.max(from, zone.newestAt - backMs);
    let after: Event | null = null;
    for (;;) {
      const page: readonly Event[] = await read(zoneId, start, after);
      if (page.length === 0) return;
      const fresh = page.filter((event) => !zone.seen.has(keyOf(event)));
      if (fresh.length > 0) yield fresh;
      after = page.at(-1) ?? null;
    }
  }

  async function* poll(
    read: ReadOnward<Event>,
  ): AsyncGenerator<{ readonly zoneId: number; readonly event: Event }> {
    const left = untilSweep;
    // After a failed read, the next poll looks for late events as well.
    untilSweep = 0;
    const backMs = left === 0 ? OVERLAP_MS : NEAR_MS;
    const parts = [...zones].map(([zoneId, zone]) => ({
      zoneId,
      zone,
      pages: readZone(zoneId, zone, read, backMs),
      page: [] as Event[],
    }));
    for (;;) {
      for (const part of parts)
        if (part.page.length === 0) part.page = [...((await part.pages.next()).value ?? [])].reverse();
      const [first] = parts
        .filter(({ page }) => page.length > 0)
        .sort((a, b) => (a.page.at(-1)?.occurredAt ?? 0) - (b.page.at(-1)?.occurredAt ?? 0));
      const event = first?.page.pop();
      if (first === undefined || event === undefined) break;
      note(first.zone, event);
      yield { zoneId: first.zoneId, event };
    }
    untilSweep = left === 0 ? SWEEP_POLLS - 1 : left - 1;
  }

  watch(zoneIds);
  return { watch, poll };
}

/** Remembers an event and forgets those that no later call reads again. */
function note(zone: Followed, event: Followable): void {
  zone.newestAt = Math.max(zone.newestAt, event.occurredAt);
  zone.seen.set(keyOf(event), event.occurredAt);
  for (const [key, at] of zone.seen) {
    if (at >= zone.newestAt - OVERLAP_MS) return;
    zone.seen.delete(key);
  }
}

export function keyOf({ occurredAt, logId }: Followable): string {
  return `${occurredAt} ${logId}`;
}
