import { findKnownZones, listNamableZones } from "#db/privacy/known-subjects.ts";
import { maySeeZone } from "./caller.ts";
import { nameKnown } from "./name-known.ts";
import type { Asked } from "./operation.ts";
import { Refusal } from "./refusal.ts";

type Asking = Pick<Asked, "db" | "caller" | "service">;

/**
 * Refuses a zone without data. Without this check, a misspelt zone would look like a zone without problems. A zone that is
 * no longer watched keeps its history.
 * @throws {Refusal} 422 naming the zones that the caller may see
 */
export async function requireZone(asking: Asking, zone: number): Promise<void> {
  await requireZones(asking, [zone], "zone");
}

/** The same for several zones, which are in the member `field` of the input. */
export async function requireZones(
  { db, caller, service: { zoneIds: configured } }: Asking,
  zones: readonly number[],
  field: string,
): Promise<void> {
  const stored = new Set([...configured, ...(await findKnownZones(db, zones))]);
  const unknown = zones.filter((zone) => !stored.has(zone));
  if (unknown.length === 0) return;
  const all = new Set([...configured, ...(await listNamableZones(db))]);
  const known = [...all].filter((id) => maySeeZone(caller, id)).sort((one, other) => one - other);
  const rule = `must be a shield zone that is configured or has stored data (${nameKnown(known)})`;
  const mistakes = unknown.map((zone) => ({ field, value: JSON.stringify(String(zone)), rule }));
  throw new Refusal(422, { slug: "unknown-zone", mistakes });
}
