/** Reads the channels and destinations of the file. */
import { z } from "zod";
import { DEFAULT_CONDITION, readCondition } from "#archive/rules/query/custom-conditions.ts";
import {
  FILTER_RULE,
  parseFilter,
  readSearch,
  refuseManyTests,
  splitMistake,
  toNativeFilter,
} from "#archive/rules/query/read-search.ts";
import {
  type ChannelConfig,
  channelConfig,
  findChannel,
  openNotifier,
} from "#delivery/receivers/channels/registry.ts";
import { type DestinationConfig, findSink, openSink } from "#delivery/receivers/sinks/destination.ts";
import { isObject } from "#lib/json.ts";
import type { CustomCondition } from "#model/custom-condition.ts";
import type { Filter } from "#model/fields.ts";
import type { Zones } from "#model/zones.ts";
import { checkOpening } from "../check-opening.ts";
import type { ConfigFile } from "./config-file-schema.ts";
import {
  channelEntry,
  channelFields,
  destinationSettings,
  forwardEntry,
  forwardFields,
  toMs,
} from "./entry-fields.ts";
import { type ReferenceContext, readEntry } from "./read-entry.ts";
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

const NO_TERMINAL = { write: () => true } as never;

/** Reads one channel of the file, as `readEntry`. */
export function readChannel(
  name: string,
  entry: unknown,
  context: ReferenceContext,
  mistakes: string[],
): ChannelConfig | null {
  const kinds = {
    part: "channels" as const,
    fields: channelFields,
    entry: channelEntry,
    exampleOf: (kind: string) => findChannel(kind)?.example,
    parse: (settings: unknown) => channelConfig.safeParse(settings).data ?? null,
    check: (config: ChannelConfig) =>
      checkOpening(config, context.allowPrivateNetworks, (network) =>
        openNotifier(config, { terminal: NO_TERMINAL, clock: () => 0, network }),
      ),
  };
  return readEntry(kinds, { name, entry }, context, mistakes);
}

/** The members of a custom condition in the file. */
const FILE_KEYS: Readonly<Record<string, string>> = { filter: "where", moreThan: "more_than" };

/** Returns the custom conditions of the file; those with mistakes are left out. */
export function readConditions(
  conditions: ConfigFile["conditions"] = {},
  zones: Zones,
  mistakes: string[],
): CustomCondition[] {
  return Object.entries(conditions).flatMap(([name, { where = [], zone, more_than, within, ...entry }]) => {
    const zoneIds = resolveZone({ zone }, zones) ?? null;
    const { severity = DEFAULT_CONDITION.severity } = entry;
    const withinMs = within ?? DEFAULT_CONDITION.withinMs;
    const read = readCondition({
      ...entry,
      name,
      filters: where,
      zoneIds,
      moreThan: more_than,
      withinMs,
      severity,
    });
    if ("condition" in read) return [read.condition];
    for (const { field, value, rule } of read.mistakes)
      mistakes.push(
        `conditions.${name}.${FILE_KEYS[field] ?? field}: ${value === undefined ? "" : `${value}: `}${rule}`,
      );
    return [];
  });
}

interface ReadWhere {
  readonly filters: readonly Filter[];
  readonly mistakes: readonly string[];
}

/** Any span: the search language needs one, and a destination has none. */
const SPAN = { from: 0, to: 1 };
const METHOD_RULE =
  "the method is in the records of events only, and cannot select the events of a destination";

/** Reads the filters at a path of the file, each as `--filter` of a search. */
function readWhere(at: string, texts: readonly string[]): ReadWhere {
  const read = texts.map((text, index) =>
    readOne(`${at}[${index}]: ${JSON.stringify(text.slice(0, 80))}`, text),
  );
  const tooMany = refuseManyTests({ ...SPAN, filters: read.flatMap(({ filters }) => filters) });
  return {
    filters: read.flatMap(({ filters }) => filters),
    mistakes: [
      ...read.flatMap(({ mistakes }) => mistakes),
      ...Object.values(tooMany ?? {}).flatMap((rules) => rules.map((rule) => `${at}: ${rule}`)),
    ],
  };
}

function readOne(at: string, text: string): ReadWhere {
  const written = parseFilter(text);
  const wrong = (mistakes: readonly string[]) => ({ filters: [], mistakes });
  if (written === null) return wrong([`${at}: must be ${FILTER_RULE}`]);
  const read = readSearch({ ...SPAN, filters: [toNativeFilter(written)] }, "export", "native");
  if ("mistakes" in read)
    return wrong(
      Object.entries(read.mistakes).flatMap(([field, rules]) =>
        rules.map((rule) => `${at}: ${field.replace("filters[0].", "")}: ${toRule(field, rule)}`),
      ),
    );
  const { filters } = read.search;
  return filters.some(({ field }) => field === "method")
    ? wrong([`${at}: ${METHOD_RULE}`])
    : { filters, mistakes: [] };
}

function toRule(field: string, text: string): string {
  const { value, rule } = splitMistake(field, text);
  return value === undefined ? rule : `${value}: ${rule}`;
}
