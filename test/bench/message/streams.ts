import { fieldsOf, toListEntry } from "#emulator/traffic/render-event.ts";
import { createTraffic } from "#emulator/traffic/traffic.ts";
import { MINUTE_MS } from "#lib/units.ts";
import { createDice } from "./dice.ts";
import { shownAddress } from "./entries.ts";
import type { Zone } from "./zones.ts";

/** Returns one of the hosts that the emulator gives a zone. */
export const hostOfStreams = ({ id }: Pick<Zone, "id">) => `www.zone${id}.example.test`;

/** Returns the emulator's everyday traffic of a zone, as lines of the same form as the situations' events. */
export function drawStreams(zone: Zone, key: string, endMs: number): { at: number; line: string }[] {
  const traffic = createTraffic({ seed: key, lateness: { share: 0, maxMs: 0 } });
  const perSecond = 0.001 * 2 ** createDice(`${key}/rate`).between(0, 3);
  const plan = {
    id: zone.id,
    firstEventMs: zone.startMs,
    createdAtMs: zone.startMs,
    rates: [{ sinceMs: 0, eventsPerSecond: perSecond }],
  };
  const lines: { at: number; line: string }[] = [];
  const lastMinute = Math.floor(endMs / MINUTE_MS);
  for (let minute = Math.floor(zone.startMs / MINUTE_MS); minute < lastMinute; minute += 1)
    for (const one of traffic.minute(plan, minute)) {
      const address = shownAddress(zone, one.ip);
      const entry = toListEntry(one);
      const log = JSON.stringify({ ...(JSON.parse(entry.log) as object), RemoteIp: address.record });
      const fields = zone.addresses === "list" ? {} : { fields: { ...fieldsOf(one), ip: address.row } };
      lines.push({ at: one.at, line: `${JSON.stringify({ zone: zone.id, ...entry, log, ...fields })}\n` });
    }
  return lines;
}
