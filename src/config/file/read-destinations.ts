import { z } from "zod";
import { isObject } from "#lib/json.ts";
import type { Zones } from "#model/zones.ts";
import { type DestinationConfig, openSink } from "#stages/delivery/sinks/destination.ts";
import { findSink } from "#stages/delivery/sinks/registry.ts";
import { checkOpening } from "./check-opening.ts";
import { toMs } from "./duration.ts";
import { destinationSettings, forwardEntry, forwardFields } from "./forward-entry.ts";
import { type ReferenceContext, readEntry } from "./read-entry.ts";
import { readWhere } from "./read-where.ts";
import { resolveZone } from "./resolve-zones.ts";

/** Reads one destination of the file, as `readEntry`. */
export function readDestination(
  name: string,
  entry: unknown,
  context: ReferenceContext & { readonly zones: Zones },
  mistakes: string[],
): DestinationConfig | null {
  const texts = isObject(entry) ? z.array(z.string()).safeParse(entry["where"]).data : undefined;
  const where = readWhere(`forward.${name}.where`, texts ?? []);
  mistakes.push(...where.mistakes);
  const kinds = {
    part: "forward" as const,
    fields: forwardFields,
    entry: forwardEntry,
    exampleOf: (kind: string) => findSink(kind)?.example,
    parse(values: { readonly kind: string }): DestinationConfig | null {
      const settings = z.object(findSink(values.kind)?.settings ?? {}).safeParse(values);
      const shared = destinationSettings.safeParse(values);
      if (!settings.success || !shared.success) return null;
      const { zones, format, batchEvents, start } = shared.data;
      return {
        name,
        kind: values.kind as DestinationConfig["kind"],
        zones: resolveZone({ zone: zones }, context.zones) ?? null,
        where: where.filters,
        format,
        batchEvents,
        startAgoMs: start === "all" ? null : toMs(start),
        settings: settings.data,
      };
    },
    check: (config: DestinationConfig) =>
      checkOpening({ ...config.settings, name }, context.allowPrivateNetworks, (network) =>
        openSink(config, { clock: () => 0, network }),
      ),
  };
  const read = readEntry(kinds, { name, entry }, context, mistakes);
  return where.mistakes.length === 0 ? read : null;
}
