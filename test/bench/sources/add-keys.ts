import type { SourceEvent } from "#detection/rules/sources/source-event.ts";
import type { SourceKind } from "#model/kinds.ts";
import type { AttackerKey, DrawnAttack, DrawnEvent } from "./zone.ts";

/** The field of an event in which a kind of attacker is named. Drawn URLs are paths. */
export const FIELD_OF: Readonly<Record<SourceKind, keyof SourceEvent>> = {
  rules_per_ip: "ip",
  ips_per_ja4: "ja4",
  ips_per_url: "url",
  ips_per_ua: "ua",
  ips_per_asn: "asn",
};
export const FIELDS = Object.entries(FIELD_OF) as (readonly [SourceKind, keyof SourceEvent])[];

/** Adds to each attack the values of its own events that name it. */
export function addKeys(
  attacks: readonly Omit<DrawnAttack, "keys">[],
  events: readonly DrawnEvent[],
): DrawnAttack[] {
  const own = Map.groupBy(events, ({ attack }) => attack);
  return attacks.map((attack, place) => ({ ...attack, keys: keysOf(own.get(place) ?? []) }));
}

function keysOf(events: readonly DrawnEvent[]): AttackerKey[] {
  return FIELDS.flatMap(([kind, field]) => {
    const least = events.length / (kind === "rules_per_ip" ? 20 : 2);
    const groups = Map.groupBy(events, (event) => event[field] ?? "");
    return [...groups].flatMap(([key, { length }]) => (length >= least ? [{ kind, key }] : []));
  });
}
