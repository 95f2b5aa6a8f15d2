/** Refuses names that are unknown, and says which are known. */
import { findKnownZones, listNamableZones, listUsedChannels } from "#db/people/known-subjects.ts";
import { closestName } from "#lib/text.ts";
import { zonesOfAccounts } from "#model/zones.ts";
import { type Caller, maySeeZone, pickSeen } from "./caller.ts";
import { type AskedZones, visibleZones } from "./fields.ts";
import type { QueryContext } from "./operation.ts";
import { Refusal } from "./refusal.ts";

interface Asking extends Pick<QueryContext, "db" | "caller"> {
  readonly service: Pick<QueryContext["service"], "zoneIds">;
}

/**
 * Refuses a zone without data. Without this check, a misspelt zone would look like a zone without problems. A zone that is
 * no longer watched keeps its history.
 * @throws {Refusal} 422 naming the zones that the caller may see
 */
export async function requireZone(asking: Asking, zone: number): Promise<void> {
  await requireZones(asking, [zone], "zone");
}

/** The same for several zones, which are in the member `field` of the input. */
export async function requireZones(asking: Asking, zones: readonly number[], field: string): Promise<void> {
  const stored = new Set([...asking.service.zoneIds, ...(await findKnownZones(asking.db, zones))]);
  const unknown = zones.filter((zone) => !stored.has(zone));
  if (unknown.length === 0) return;
  const known = nameKnown(await listVisibleZones(asking));
  const rule = `must be a shield zone that is configured or has stored data (${known})`;
  const mistakes = unknown.map((zone) => ({ field, value: JSON.stringify(String(zone)), rule }));
  throw new Refusal(422, { slug: "unknown-zone", mistakes });
}

/** Returns every zone that is configured or has stored data and that the caller may see. */
export async function listVisibleZones({ db, caller, service }: Asking): Promise<number[]> {
  const all = new Set([...service.zoneIds, ...(await listNamableZones(db))]);
  return [...all].filter((id) => maySeeZone(caller, id)).sort((one, other) => one - other);
}

/**
 * Returns the requested zones; for `all`, every zone that `listVisibleZones` returns.
 * @throws {Refusal} 403 for a zone of others
 */
export async function readZones(asking: Asking, zone: AskedZones): Promise<readonly number[]> {
  return zone === "all" ? await listVisibleZones(asking) : (visibleZones(asking.caller, zone) ?? zone);
}

/**
 * Returns the zones that a list is asked for; null is every zone.
 * @throws {Refusal} 403 for a zone of others, 422 as `requireZone`
 */
export async function pickZones(
  asking: Asking,
  zone: AskedZones | undefined,
): Promise<readonly number[] | null> {
  const zones = visibleZones(asking.caller, zone);
  if (zone !== undefined && zone !== "all") await requireZones(asking, zone, "zone");
  return zones;
}

/**
 * Returns the zones of the accounts of these names that the caller may see; without a caller all of them.
 * @throws {Refusal} 422 naming the accounts that the caller may see
 */
export function requireAccounts(
  { accounts }: Pick<QueryContext["service"], "accounts">,
  names: readonly string[],
  field: string,
  caller: Pick<Caller, "zoneIds"> = { zoneIds: null },
): number[] {
  const seen = accounts.filter(
    ({ zoneIds }) => caller.zoneIds === null || pickSeen(caller, zoneIds).length > 0,
  );
  const known = seen.map(({ name }) => name);
  const rule = `must be an account of the service (${nameKnown(known)})`;
  const unknown = names.filter((name) => !known.includes(name));
  const mistakes = unknown.map((name) => ({ field, value: JSON.stringify(name), rule }));
  if (mistakes.length > 0) throw new Refusal(422, { slug: "unknown-account", mistakes });
  return pickSeen(caller, zonesOfAccounts(seen, names));
}

/**
 * Refuses a channel that is neither configured nor was used before.
 * @throws {Refusal} 422 naming the channels, and the one that is probably meant
 */
export async function requireChannel(
  { db, service }: Pick<QueryContext, "db" | "service">,
  channel: string,
  field = "channel",
): Promise<void> {
  const configured = service.alerting().channels.map(({ name }) => name);
  if (configured.includes(channel)) return;
  const known = [...configured, ...(await listUsedChannels(db))];
  if (!known.includes(channel)) refuseUnknown(channel, known, { what: "channel", field });
}

/**
 * Refuses a name, which is none of those that are configured or were used before.
 * @throws {Refusal} 422 naming them, and the one that is probably meant
 */
export function refuseUnknown(
  name: string,
  names: readonly string[],
  { what, field }: { readonly what: string; readonly field: string },
): never {
  const known = [...new Set(names)].sort();
  const meant = closestName(name, known);
  const hint = meant === null ? "" : `: did you mean ${meant}?`;
  const rule = `must be a ${what} that is configured or was used before (${nameKnown(known)})${hint}`;
  throw new Refusal(422, {
    slug: `unknown-${what}`,
    mistakes: [{ field, value: JSON.stringify(name), rule }],
  });
}

const MOST_NAMED = 20;

/** Returns the first known things in one text for a mistake: what could have been meant. */
export function nameKnown(known: readonly (string | number)[]): string {
  if (known.length === 0) return "there is none";
  const more = known.length > MOST_NAMED ? ` and ${known.length - MOST_NAMED} more` : "";
  return `${known.slice(0, MOST_NAMED).join(", ")}${more}`;
}
