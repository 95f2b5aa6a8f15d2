import { expect, test } from "vitest";
import { MINUTE_MS } from "#lib/units.ts";
import type { WafEvent } from "#model/waf-event.ts";
import { sample } from "../support/sample.ts";
import { END, minuteOf, openDetectWorld } from "./detect-support.ts";
import { createLateWorld, type TimedEvent } from "./late-world.ts";
import { createRollUp, makeEvent, storeAll } from "./trend-support.ts";

const { database, world } = await openDetectWorld();

const HOUR = Math.floor(END / 60) * 60;
/** The minute of the day in which the monitor comes: while the job runs. */
const MONITORED = (HOUR - 40) % 1_440;
const HISTORY_HOURS = 71;
const SCANNER = "198.51.100.7";
/** How long a copy takes, in ticks. */
const COPY_MINUTES = 6;
/** The attack begins so long after the last copy is complete. */
const PAUSE_MINUTES = 10;

/** What a zone has when the job first sees it, and the order in which its hours arrive. */
type Shape = "empty" | "at once" | "oldest first" | "newest first" | "complete";
const SHAPES: readonly Shape[] = ["empty", "at once", "oldest first", "newest first", "complete"];
const ZONES = SHAPES.map((shape, i) => ({ zoneId: 101 + i, shape }));
const ZONE_IDS = ZONES.map(({ zoneId }) => zoneId);

function eventAt(minute: number, name: string, event: Partial<WafEvent>): WafEvent {
  return makeEvent({ occurredAt: minute * MINUTE_MS + 1_000, logId: `${name}/${minute}`, ...event });
}

/** Everyday visitors of the minutes [from, to): an event every ten minutes, and each afternoon a monitor that triggers 20 rules. */
function everyday(from: number, to: number): WafEvent[] {
  return Array.from({ length: to - from }, (_, i) => from + i).flatMap((minute) => {
    if (minute % 1_440 === MONITORED) return scan(minute, "monitor", { ip: "192.0.2.9", rules: 20 });
    if (minute % 10 !== 0) return [];
    const ip = `10.0.${minute % 250}.${(minute / 10) % 250}`;
    return [eventAt(minute, "visitor", { ip, ruleId: `94${minute % 4}100` })];
  });
}

/** One address that triggers a number of rules in a minute. */
function scan(minute: number, name: string, { ip, rules }: { ip: string; rules: number }): WafEvent[] {
  return Array.from({ length: rules }, (_, i) =>
    eventAt(minute, `${name}/${i}`, { ip, ruleId: `9${100 + i}` }),
  );
}

async function store(zoneId: number, events: readonly WafEvent[]): Promise<void> {
  await storeAll(database, events, { zoneId });
}

/** Records the hours [from, to) of a zone as known; `through` is the minute that the search of the last one has reached. */
async function cover(
  zoneId: number,
  { from, to, through }: { from: number; to: number; through: number | null },
) {
  await database.pool.query(
    `insert into coverage_windows (zone_id, starts_at, searched_through, state)
     select $1, to_timestamp(hour * 3600), least(to_timestamp(hour * 3600 + 3600), to_timestamp($4::float8 * 60)), 'open'
     from generate_series($2::integer, $3::integer - 1) as hour
     on conflict (zone_id, starts_at) do update set searched_through =
       greatest(coverage_windows.searched_through, excluded.searched_through)`,
    [zoneId, from, to, through],
  );
}

/** The hours of the history that a zone has after so many minutes of a copy. */
function copiedHours(shape: Shape, minutes: number, [first, last]: readonly [number, number]): number[] {
  const hours = Array.from({ length: last - first }, (_, i) => first + i);
  const share = Math.min(Math.max(minutes / COPY_MINUTES, 0), 1);
  if (shape === "complete") return hours;
  if (shape === "empty" || shape === "at once") return minutes >= COPY_MINUTES ? hours : [];
  const ordered = shape === "newest first" ? hours.toReversed() : hours;
  return ordered.slice(0, Math.floor(share * hours.length));
}

interface Started {
  /** The minute of the job's first tick. */
  readonly start: number;
  /** How long after the beginning of the attack the job is made anew; null: never. */
  readonly restartAfter: number | null;
}

/** Runs the job through a first start and an attack on every zone. Returns the spikes. */
async function firstStart({ start, restartAfter }: Started, signal: AbortSignal) {
  const createJob = () => world.createSourceDetector(undefined, undefined, undefined, ZONE_IDS);
  const rollUp = createRollUp(database);
  const runningHour = Math.floor(start / 60);
  const firstHour = runningHour - HISTORY_HOURS;
  const attackAt = start + COPY_MINUTES + PAUSE_MINUTES;
  const hoursAt = (shape: Shape, minute: number) =>
    copiedHours(shape, minute - start, [firstHour, runningHour]);
  let job = createJob();
  for (let now = start; now <= attackAt + 5; now += 1) {
    // A run that is too late would go on in the world of the next test.
    signal.throwIfAborted();
    for (const { zoneId, shape } of ZONES) {
      // The service has not asked about these zones, so there is no row of them.
      if (now === start && shape === "empty") continue;
      await cover(zoneId, { from: firstHour, to: runningHour, through: null });
      const before = now === start ? [] : hoursAt(shape, now - 1);
      const added = hoursAt(shape, now).filter((hour) => !before.includes(hour));
      await store(
        zoneId,
        added.flatMap((hour) => everyday(hour * 60, hour * 60 + 60)),
      );
      for (const hour of added) await cover(zoneId, { from: hour, to: hour + 1, through: now });
      const live = everyday(now - 1 === start ? runningHour * 60 : now - 1, now);
      const attack = now > attackAt ? scan(now - 1, "scanner", { ip: SCANNER, rules: 30 }) : [];
      if (now > start) await store(zoneId, [...live, ...attack]);
      await cover(zoneId, { from: runningHour, to: Math.floor(now / 60) + 1, through: now });
    }
    await rollUp();
    if (restartAfter !== null && now === attackAt + restartAfter) job = createJob();
    await world.tickAt(now * MINUTE_MS + 1, job);
  }
  const spikes = await world.readSpikes();
  return spikes.map(({ zoneId, kind, openedAt, closedAt, severity, sources }) => ({
    zoneId,
    kind,
    openedAfter: (minuteOf(openedAt) ?? 0) - attackAt,
    closedAt,
    severity,
    attackers: sources?.findings.map(({ key }) => key),
  }));
}

const WITHIN = HOUR - 55;
const ACROSS = HOUR - 70;

const STARTS: [string, Started][] = [
  ["within an hour", { start: WITHIN, restartAfter: null }],
  ["across the beginning of an hour", { start: ACROSS, restartAfter: null }],
  ["within an hour, and whose job was restarted as the attack began", { start: WITHIN, restartAfter: 0 }],
  ["across the beginning of an hour, and whose job was restarted later", { start: ACROSS, restartAfter: 3 }],
];
/** The other two differ in one thing from one of these. */
const isMixed = (_: string, { start, restartAfter }: Started) =>
  (start === WITHIN) !== (restartAfter === null);
test.for(sample(STARTS, (one) => isMixed(...one)))(
  "zones whose history was copied %s each open one incident as the scanner is over its line",
  async ([, started], { signal }) => {
    const incident = {
      kind: "sources",
      openedAfter: 1,
      closedAt: null,
      severity: "error",
      attackers: [SCANNER],
    };
    expect(await firstStart(started, signal)).toEqual(ZONE_IDS.map((zoneId) => ({ zoneId, ...incident })));
  },
);

test("minutes that seemed to be of a zone's first day are judged late once older events are stored", async () => {
  const late = createLateWorld(database, [ZONE_IDS[0] as number]);
  const zoneId = ZONE_IDS[0] as number;
  const [start, attackAt, end] = [HOUR - 150, HOUR - 100, HOUR - 60];
  const isOld = ({ minute }: TimedEvent) => minute < start;
  const events = everyday(start - HISTORY_HOURS * 60, end)
    .concat(scan(attackAt, "scanner", { ip: SCANNER, rules: 30 }))
    .map(toTimed);
  const run = async (from: number, to: number) => {
    for (let now = from; now <= to; now += 5) {
      late.setMinute(now);
      await late.store(
        zoneId,
        events.filter(({ minute }) => minute >= Math.max(now - 5, start) && minute < now),
      );
      await late.search(zoneId, start - HISTORY_HOURS * 60, now);
      await late.tick();
    }
  };
  await run(start, end);
  await late.judgeLate();
  expect(await late.readSpikes(zoneId)).toEqual([]);
  await late.store(zoneId, events.filter(isOld));
  await late.tick();
  expect(await late.readSpikes(zoneId)).toEqual([]);
  // Hours are judged late once the hour in which their events came is over.
  await run(end + 5, end + 85);
  // Each run counts a day of the history.
  for (let i = 0; i < 5; i += 1) await late.judgeLate();
  expect(await late.countUnjudged()).toBe(0);
  const attackers = (await late.readSpikes(zoneId)).flatMap(({ sources }) => sources?.findings ?? []);
  expect(attackers.filter(({ key }) => key === SCANNER)).toMatchObject([{ since: attackAt + 1 }]);
});

function toTimed({ occurredAt, ruleId, ip, asn, ja4, ua, url }: WafEvent): TimedEvent {
  return { minute: Math.floor(occurredAt / MINUTE_MS), ruleId, ip, asn, ja4, ua, url };
}
