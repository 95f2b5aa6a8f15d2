/** Destinations as operations see them. */
import { z } from "zod";
import type { Queryable } from "#db/client.ts";
import { type DestinationHealth, readDestinations } from "#db/delivery/forwarding/forward-destinations.ts";
import { listCursors, readArrivals } from "#db/delivery/forwarding/forward-report.ts";
import type { DestinationConfig } from "#delivery/receivers/sinks/destination.ts";
import { DAY_MS } from "#lib/units.ts";
import type { Filter } from "#model/fields.ts";
import { maySeeZone } from "#operations/caller.ts";
import type { Changing, QueryContext } from "#operations/operation.ts";
import { refuseUnknown } from "#operations/require-known.ts";

export const TAG = "Forwarding";

export const DestinationName = z
  .string()
  .min(1)
  .max(200)
  .refine((name) => !name.includes("\0"), "must be a destination's name")
  .describe("The destination's name.");

/** A destination as the caller may see it. */
interface SeenDestination {
  readonly name: string;
  /** Null if the configuration of this process does not have it. */
  readonly config: Omit<DestinationConfig, "settings"> | null;
  /** The zones of the destination that the caller may see, each with the beginning of its cursor (epoch ms), null before the first run. */
  readonly zones: ReadonlyMap<number, number | null>;
}

type Asking = Pick<QueryContext, "db" | "caller" | "service">;

/** Returns the destinations that are configured or were used before. One without a zone of the caller is left out. */
export async function listDestinations({ db, caller, service }: Asking): Promise<SeenDestination[]> {
  const configs = new Map(service.alerting().destinations.map((config) => [config.name, config]));
  const cursors = Map.groupBy(await listCursors(db), ({ destination }) => destination);
  const used = await readDestinations(db);
  return [...new Set([...configs.keys(), ...used.keys()])].sort().flatMap((name) => {
    const config = configs.get(name) ?? null;
    const begun = new Map(cursors.get(name)?.map(({ zoneId, since }) => [zoneId, since]));
    const ids = config?.zones ?? [...new Set([...(config === null ? [] : service.zoneIds), ...begun.keys()])];
    const seen = ids.filter((zoneId) => maySeeZone(caller, zoneId)).sort((one, other) => one - other);
    if (seen.length === 0 && caller.zoneIds !== null) return [];
    return [{ name, config, zones: new Map(seen.map((zoneId) => [zoneId, begun.get(zoneId) ?? null])) }];
  });
}

/**
 * Returns a destination.
 * @throws {Refusal} 422 naming the destinations that the caller may see
 */
export async function requireDestination(asking: Asking, destination: string): Promise<SeenDestination> {
  const seen = await listDestinations(asking);
  const found = seen.find(({ name }) => name === destination);
  if (found !== undefined) return found;
  const names = seen.map(({ name }) => name);
  return refuseUnknown(destination, names, { what: "destination", field: "destination" });
}

/** Enqueues the job after the commit. Without a queue, its tick finds the work. */
export function forwardSoon(
  { enqueue, afterCommit }: Pick<Changing, "enqueue" | "afterCommit">,
  destination: string,
) {
  afterCommit(() => enqueue("forward-events", { destination }).catch(() => false));
}

/** Returns a filter as the configuration file has it. */
export function writeFilter({ field, op, not, value }: Filter): string {
  const values = value.map((one) => one.replaceAll(",", "\\,"));
  return `${field}:${not === true ? "not-" : ""}${op}:${values.join()}`;
}

/** Older hours are left out, so that few rows are read. */
const SUMMED_MS = 30 * DAY_MS;

/** Totals of a destination, all zones together. Hours are those of the last 30 days. */
export interface DestinationTotals {
  readonly destination: string;
  /** Null if nothing was ever sent to it. */
  readonly health: DestinationHealth | null;
  readonly hoursOpen: number;
  readonly hoursDiffering: number;
  /** Start of the oldest sealed hour that has not arrived, epoch ms; null if there is none. */
  readonly oldestAt: number | null;
  readonly refused: number;
}

/** Returns the totals of these destinations. */
export async function sumDestinations(
  db: Queryable,
  names: readonly string[],
  nowMs: number,
): Promise<DestinationTotals[]> {
  if (names.length === 0) return [];
  const healths = await readDestinations(db);
  const arrivals = await readArrivals(db, { from: nowMs - SUMMED_MS });
  return names.map((name) => {
    const health = healths.get(name) ?? null;
    const zones = arrivals.filter(({ destination }) => destination === name);
    const oldest = zones.flatMap(({ oldestAt }) => oldestAt ?? []);
    return {
      destination: name,
      health,
      hoursOpen: zones.reduce(
        (sum, { decided, arrived, differing }) => sum + decided - arrived - differing,
        0,
      ),
      hoursDiffering: zones.reduce((sum, { differing }) => sum + differing, 0),
      oldestAt: oldest.length === 0 ? null : Math.min(...oldest),
      refused: zones.reduce((sum, { refused }) => sum + refused, 0),
    };
  });
}
