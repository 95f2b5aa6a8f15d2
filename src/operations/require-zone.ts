import { findKnownZones, listNamableZones } from "#db/privacy/known-subjects.ts";
import { maySeeZone } from "./caller.ts";
import type { Asked } from "./operation.ts";
import { Refusal } from "./refusal.ts";

const MOST_NAMED = 20;

/**
 * Refuses a zone without data. Without this check, a misspelt zone would look like a zone without problems. A zone that is
 * no longer watched keeps its history.
 * @throws {Refusal} 422 naming the zones that the caller may see
 */
export async function requireZone(
  { db, caller, service }: Pick<Asked, "db" | "caller" | "service">,
  zone: number,
): Promise<void> {
  if (service.zoneIds.includes(zone) || (await findKnownZones(db, [zone])).length > 0) return;
  const known = [...new Set([...service.zoneIds, ...(await listNamableZones(db))])]
    .filter((id) => maySeeZone(caller, id))
    .sort((a, b) => a - b);
  const shown = known.slice(0, MOST_NAMED).join(", ");
  const more = known.length > MOST_NAMED ? ` and ${known.length - MOST_NAMED} more` : "";
  const rule = `must be a shield zone that is configured or has stored data (${known.length === 0 ? "there is none" : `${shown}${more}`})`;
  throw new Refusal(422, {
    slug: "unknown-zone",
    mistakes: [{ field: "zone", value: JSON.stringify(String(zone)), rule }],
  });
}
