import { readFileSync } from "node:fs";
import { parse } from "csv-parse/sync";
import { z } from "zod";
import type { ReplayedMessage } from "#alerts/rules/backtest/replay-incidents.ts";
import { SEVERITIES, SOURCE_KINDS } from "#model/kinds.ts";

const words = z.string().transform((text) => text.split(" ").filter((word) => word !== ""));
const Attacker = z
  .string()
  .transform((word) => word.split(/=(.*)/s))
  .pipe(z.tuple([z.enum(SOURCE_KINDS), z.string().transform(decodeURIComponent)], z.string()))
  .transform(([kind, key]) => ({ kind, key }));
const Line = z.object({
  zone: z.string(),
  at: z.coerce.number().int(),
  incident: z.string(),
  reason: z.enum(["first", "join", "again", "worse", "late", "repeat", "turned", "settled", "resolved"]),
  severity: z.enum(SEVERITIES),
  subject: z.enum(["incident", "rule", "flip"]),
  attackers: words.pipe(z.array(Attacker)),
  rules: words,
});

/** Reads the file that `longwatch backtest --alerts` writes. Returns the messages of each zone. */
export function readAlerts(path: string): ReadonlyMap<string, ReplayedMessage[]> {
  const zones = new Map<string, ReplayedMessage[]>();
  const incidents = new Map<string, number>();
  for (const line of z.array(Line).parse(parse(readFileSync(path), { columns: true }))) {
    const { zone, at, ...message } = line;
    const name = `${zone}/${line.incident}`;
    const incident = incidents.get(name) ?? incidents.size;
    incidents.set(name, incident);
    zones.set(zone, [...(zones.get(zone) ?? []), { ...message, at: Math.floor(at / 60), incident }]);
  }
  return zones;
}
