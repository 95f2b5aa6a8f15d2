import { createDatabase, type Database } from "#db/client.ts";
import { readCoverageHours } from "#db/proof/coverage-report.ts";
import { HOUR_MS } from "#lib/units.ts";
import { startOfHour } from "#model/horizon.ts";
import { findBreaches, findMissing, readShown, readStored, type ShownEvent } from "../faults/invariants.ts";
import { checkAlerts } from "./check-alerts.ts";
import { reckonHours, type SoakHour } from "./reckon-hours.ts";
import { type SoakWorld, ZONES } from "./soak-world.ts";

export interface FinalCheck {
  readonly name: string;
  /** The result in a few words. */
  readonly detail: string;
  readonly isMet: boolean;
}

/** Returns the events that the platform has shown by now, by zone. */
export async function readShownEvents({ emulator }: SoakWorld): Promise<Map<number, ShownEvent[]>> {
  return new Map(
    await Promise.all(ZONES.map(async (zone) => [zone, await readShown(emulator.url, zone)] as const)),
  );
}

/** Checks everything that must hold once the faults are over; `expected` is what had been shown when they ended. */
export async function runFinalChecks(
  world: SoakWorld,
  expected: ReadonlyMap<number, readonly ShownEvent[]>,
): Promise<FinalCheck[]> {
  const { postgres } = world;
  const database = createDatabase({
    url: postgres.url,
    max: 2,
    applicationName: "soak",
    // A machine that runs three replicas, the platform and both servers is slow.
    statementTimeoutMs: 10 * 60_000,
    onError: () => undefined,
  });
  try {
    const missing: string[] = [];
    const breaches: string[] = [];
    for (const [zone, events] of expected) {
      missing.push(...(await findMissing(database, zone, events)));
      // Lies keep the log id, so an event may be stored under any time that an answer gave it.
      const { falseTimes, phantomIds } = world.liar.witness;
      const lies = { falseTimes, phantomIds, isKnown: () => true };
      const read = () => readShown(world.emulator.url, zone);
      breaches.push(...(await findBreaches(database, zone, read, lies)));
    }
    const total = [...expected.values()].reduce((sum, events) => sum + events.length, 0);
    return [
      {
        name: "stored set = oracle set",
        detail:
          missing.length === 0
            ? `${total} events, ${await countRevisions(world)}`
            : `${missing.length} of ${total} missing: ${missing[0]}`,
        isMet: missing.length === 0,
      },
      {
        name: "invariants I1 to I7",
        detail: breaches.length === 0 ? "all hold" : breaches.join("; ").slice(0, 600),
        isMet: breaches.length === 0,
      },
      ...(await checkHours(database, await readShownEvents(world))),
      await checkOutbox(world),
      await checkAlerts(world),
    ];
  } finally {
    await database.close();
  }
}

/** Checks that every replica ran until a fault or the end of the soak ended it. */
export function checkEnds({ unaskedEnds }: SoakWorld): FinalCheck {
  const detail = unaskedEnds.length === 0 ? "none did" : [...new Set(unaskedEnds)].join("; ");
  return { name: "no replica ended by itself", detail, isMet: unaskedEnds.length === 0 };
}

async function countRevisions({ postgres }: SoakWorld): Promise<string> {
  const [row] = await postgres.query<{ withdrawn: number; revised: number }>(
    `select count(*) filter (where field = 'withdrawn')::int as withdrawn,
       count(*) filter (where field <> 'withdrawn')::int as revised
     from event_revisions where accepted_at is not null`,
  );
  return `${row?.withdrawn} withdrawn, ${row?.revised} values revised`;
}

/** Checks the hours and the events of every zone by what the platform ever showed. */
async function checkHours(
  database: Database,
  shown: ReadonlyMap<number, readonly ShownEvent[]>,
): Promise<FinalCheck[]> {
  const now = Date.now();
  const hours: SoakHour[] = [];
  const foreign: string[] = [];
  for (const zoneId of ZONES) {
    const stored = await readStored(database.pool, zoneId);
    const own = shown.get(zoneId) ?? [];
    const lacking = own.filter(({ logId }) => !stored.has(logId));
    const incomplete = new Set(lacking.map(({ timestamp }) => startOfHour(timestamp)));
    const others = [...shown].flatMap(([other, events]) => (other === zoneId ? [] : events));
    const isForeign = ({ logId }: ShownEvent) => stored.has(logId);
    foreign.push(...others.filter(isForeign).map(({ logId }) => `zone ${zoneId}: ${logId}`));
    const known = await readCoverageHours(database.db, zoneId, { from: 0, to: now - HOUR_MS });
    hours.push(...known.map((hour) => ({ ...hour, zoneId, isComplete: !incomplete.has(hour.startsAt) })));
  }
  const { sealed, gaps, reasons, falseGaps, waiting, waitingUntil, failures } = reckonHours(now, hours);
  const parts = [
    `${sealed} sealed`,
    `${gaps} gaps`,
    ...[...reasons].map(([reason, count]) => `${count} gaps: ${reason}`),
    ...(waitingUntil === null
      ? []
      : [`${waiting} not yet due (the last at ${new Date(waitingUntil).toISOString().slice(11, 16)} UTC)`]),
    ...(failures.length === 0 ? [] : [`${failures.length} failed: ${failures.slice(0, 50).join("\n  ")}`]),
  ];
  const isMet = hours.length > 0 && failures.length === 0;
  return [
    { name: "every due hour sealed or a gap", detail: parts.join(", "), isMet },
    checkNone("no false gap", falseGaps),
    checkNone("no event of another zone stored", foreign),
  ];
}

function checkNone(name: string, found: readonly string[]): FinalCheck {
  const detail = found.length === 0 ? "none" : `${found.length}: ${found[0]}`;
  return { name, detail, isMet: found.length === 0 };
}

async function checkOutbox({ postgres }: SoakWorld): Promise<FinalCheck> {
  const [row] = await postgres.query<{ due: number; told: number; refused: number }>(
    `select count(*) filter (where state in ('pending', 'sending'))::int as due,
       count(*) filter (where state = 'delivered')::int as told,
       count(*) filter (where state = 'undeliverable' and last_error not like 'superseded%')::int as refused
     from notifications`,
  );
  const { due = -1, told = 0, refused = 0 } = row ?? {};
  return {
    name: "outbox empty",
    detail: `${told} delivered, ${due} due, ${refused} dropped as stale`,
    isMet: due === 0,
  };
}
