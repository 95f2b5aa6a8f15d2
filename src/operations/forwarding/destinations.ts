import { z } from "zod";
import { readDestinations } from "#db/delivery/forwarding/forward-destinations.ts";
import { listCursors } from "#db/delivery/forwarding/forward-report.ts";
import type { Filter } from "#model/fields.ts";
import type { DestinationConfig } from "#stages/delivery/sinks/destination.ts";
import { maySeeZone } from "../caller.ts";
import type { Asked, Changing } from "../operation.ts";
import { refuseUnknown } from "../require-known.ts";

export const TAG = "Forwarding";

export const DestinationName = z
  .string()
  .min(1)
  .max(200)
  .refine((name) => !name.includes("\0"), "must be a destination's name")
  .describe("The destination's name.");

/** A destination as the caller may see it. */
export interface SeenDestination {
  readonly name: string;
  /** Null if the configuration of this process does not have it. */
  readonly config: Omit<DestinationConfig, "settings"> | null;
  /** The zones of the destination that the caller may see, each with the beginning of its cursor (epoch ms), null before the first run. */
  readonly zones: ReadonlyMap<number, number | null>;
}

type Asking = Pick<Asked, "db" | "caller" | "service">;

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
