import { z } from "zod";
import { type DestinationHealth, readDestinations } from "#db/delivery/forwarding/forward-destinations.ts";
import { readArrivals, type ZoneArrival } from "#db/delivery/forwarding/forward-report.ts";
import type { Paint, Style } from "#delivery/receivers/channels/terminal/terminal-style.ts";
import { findSink } from "#delivery/receivers/sinks/destination.ts";
import { formatWhole, showTime } from "#lib/format.ts";
import { shortenText } from "#lib/text.ts";
import { DESTINATION_STATES, type DestinationState, EVENT_FORMATS, FORWARD_KINDS } from "#model/kinds.ts";
import { nameZone } from "#model/zones.ts";
import { IsoTime, Name, Text, toIsoOrNull } from "#operations/fields.ts";
import { type DrawTable, defineQuery } from "#operations/operation.ts";
import { listDestinations, TAG, writeFilter } from "./destinations.ts";

const MAX_TEXT_CHARS = 300;
/** Exit code of `forward status` if a destination needs a person. */
const TROUBLE_EXIT_CODE = 3;

const ForwardedZone = z.object({
  zoneId: z.number().int(),
  name: Name.nullable().describe("Name of the zone in the configuration file."),
  since: IsoTime.nullable().describe(
    "Start of the first hour that is forwarded, never before retention begins. 1970 if all is kept and forwarded. Null before the first run.",
  ),
  decided: z.number().int().describe("Hours since then that are sealed, or gaps."),
  arrived: z.number().int().describe("How many of them have arrived with every stored event."),
  open: z.number().int().describe("How many of them are not proven yet."),
  differing: z.number().int().describe("How many of them were sent twice and still differ."),
  oldestAt: IsoTime.nullable().describe("Start of the oldest of them that has not arrived."),
  waitingHours: z
    .number()
    .int()
    .describe("Hours that are still to be read, also those that can gain events."),
  waitingEvents: z.number().describe("At most how many stored events of these hours are not acknowledged."),
  refused: z.number().int().describe("Events that the destination has refused."),
});

const Destination = z
  .object({
    name: Name,
    kind: z
      .enum(FORWARD_KINDS)
      .nullable()
      .describe("Null if the configuration does not have the destination."),
    format: z.enum(EVENT_FORMATS).nullable(),
    acknowledgedWhen: Text.nullable().describe("When an event counts as acknowledged by its kind."),
    where: z.array(Text).describe("Filters that an event must pass."),
    state: z
      .enum(DESTINATION_STATES)
      .describe("waiting: nothing was sent yet. refused: it fails until a person changes something."),
    failingSince: IsoTime.nullable(),
    lastError: Text.nullable().describe("May quote the receiver. Null for a key for some zones."),
    nextAttemptAt: IsoTime.nullable(),
    acknowledgedAt: IsoTime.nullable().describe("When it last acknowledged events, of any zone."),
    zones: z.array(ForwardedZone),
  })
  .meta({ id: "Destination" });
type Destination = z.infer<typeof Destination>;

const HEADS = [
  "ZONE",
  "SINCE (UTC)",
  "SEALED",
  "ARRIVED",
  "OPEN",
  "DIFFER",
  "REFUSED",
  "TO SEND",
  "OLDEST (UTC)",
];
const STYLES: Readonly<Record<DestinationState, Style>> = {
  works: "green",
  waiting: "yellow",
  failing: "red",
  refused: "red",
};

export const showForwarding = defineQuery({
  name: "forward.status",
  summary: "Show whether every hour has arrived at each destination",
  description:
    "A sealed hour has arrived when the destination has acknowledged or refused every stored event of the hour and, if it can be asked, counts what it has acknowledged.",
  http: ["GET", "/api/v1/destinations"],
  tag: TAG,
  scope: "read",
  input: z.strictObject({}),
  output: z.object({ items: z.array(Destination) }),
  command: {
    examples: ["forward status", "forward status --json"],
    help: `An hour has arrived when the destination has acknowledged every stored event of the hour. An hour without events has
arrived, too. Hours that are not sealed yet do not count. OLDEST is the oldest hour that is open or differs. TO SEND is at most
that many events. Exit code 0; 3 if a destination fails, an hour differs, or events were refused.`,
    say: ({ items }, about) =>
      items.length === 0
        ? "Nothing is forwarded: the configuration file has no destination (docs/forwarding.md).\n"
        : items.map((one) => describe(one, about)).join("\n"),
    exitCode: ({ items }) =>
      items.some(({ failingSince, zones }) => failingSince !== null || sum(zones, "differing", "refused") > 0)
        ? TROUBLE_EXIT_CODE
        : 0,
  },
  run: async (asked) => {
    const { db, caller } = asked;
    const destinations = await listDestinations(asked);
    const healths = await readDestinations(db);
    const arrivals = await readArrivals(db, { zoneIds: caller.zoneIds });
    const names = asked.zones();
    const items = destinations.map(({ name, config, zones }) => {
      const health = healths.get(name);
      const arrived = new Map(
        arrivals.flatMap((one) => (one.destination === name ? [[one.zoneId, one]] : [])),
      );
      return {
        name,
        kind: config?.kind ?? null,
        format: config?.format ?? null,
        acknowledgedWhen: findSink(config?.kind ?? "")?.acknowledgedWhen ?? null,
        where: config?.where.map(writeFilter) ?? [],
        state: toState(health),
        failingSince: toIsoOrNull(health?.failingSince ?? null),
        lastError: caller.zoneIds === null ? (health?.lastError ?? null) : null,
        nextAttemptAt: toIsoOrNull(health?.retryAt ?? null),
        acknowledgedAt: toIsoOrNull(health?.acknowledgedAt ?? null),
        zones: [...zones].map(([zoneId, since]) => {
          const { destination: _, oldestAt, ...counts } = arrived.get(zoneId) ?? { ...NOTHING, zoneId };
          return {
            ...counts,
            name: names[zoneId]?.name ?? null,
            since: toIsoOrNull(since),
            open: counts.decided - counts.arrived - counts.differing,
            oldestAt: toIsoOrNull(oldestAt),
          };
        }),
      };
    });
    return { items };
  },
});

const NOTHING: Omit<ZoneArrival, "zoneId"> = {
  destination: "",
  decided: 0,
  arrived: 0,
  differing: 0,
  oldestAt: null,
  waitingHours: 0,
  waitingEvents: 0,
  refused: 0,
};

function toState(health: DestinationHealth | undefined): DestinationState {
  if (health?.failingSince != null) return health.isRefused ? "refused" : "failing";
  return health?.acknowledgedAt == null ? "waiting" : "works";
}

function sum(zones: Destination["zones"], ...members: ("decided" | "arrived" | "differing" | "refused")[]) {
  return zones.flatMap((zone) => members.map((member) => zone[member])).reduce((one, more) => one + more, 0);
}

function describe(
  { name, kind, format, acknowledgedWhen, where, state, lastError, zones, ...at }: Destination,
  { paint, table }: { readonly paint: Paint; readonly table: DrawTable },
): string {
  const decided = sum(zones, "decided");
  const arrived = sum(zones, "arrived");
  const what = kind === null ? "not configured" : `${kind}, ${format}`;
  const show = (time: string | null, none: string) => (time === null ? none : `${showTime(time)} UTC`);
  const hour = (time: string | null) => (time === null ? "" : showTime(time));
  const rows = zones.map((zone) => [
    nameZone(zone.zoneId, zone.name),
    zone.since === null ? "not begun" : Date.parse(zone.since) === 0 ? "all" : hour(zone.since),
    ...[zone.decided, zone.arrived, zone.open, zone.differing, zone.refused, zone.waitingEvents].map(
      formatWhole,
    ),
    hour(zone.oldestAt),
  ]);
  return [
    `${paint("bold", name)}   ${what}   ${paint(STYLES[state], state)}`,
    arrived === decided
      ? `every sealed hour has arrived: ${formatWhole(arrived)} of ${formatWhole(decided)}`
      : `${formatWhole(arrived)} of ${formatWhole(decided)} sealed hours have arrived`,
    `last acknowledged: ${show(at.acknowledgedAt, "never")}`,
    ...(acknowledgedWhen === null ? [] : [`an event is acknowledged when ${acknowledgedWhen}`]),
    ...(at.failingSince === null
      ? []
      : [
          `failing since ${show(at.failingSince, "")}: ${shortenText(lastError ?? "", MAX_TEXT_CHARS)}`,
          `next attempt: ${show(at.nextAttemptAt, "now")}`,
        ]),
    ...(where.length === 0 ? [] : [`only events with ${shortenText(where.join(" and "), MAX_TEXT_CHARS)}`]),
    table(HEADS, rows),
  ].join("\n");
}
