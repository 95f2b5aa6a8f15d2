import { inTurns } from "#lib/waiting.ts";
import { attackerIdOf, isActive } from "#model/fingerprint.ts";
import { type AttackerRole, SOURCE_KINDS, type SourceKind } from "#model/kinds.ts";
import type { KnownSources } from "#model/known-source.ts";
import { LONGEST_WINDOW } from "../detection-settings.ts";
import { type Fire, type FiredMinute, overZ } from "../sources/judge-sources.ts";
import { sourceKeyOf } from "../sources/source-event.ts";
import type { MinuteEvent } from "../sources/usual-rules.ts";
import {
  type Attacker,
  activeAttackers,
  createLinkTest,
  endOfIncident,
  type Incident,
  isAddress,
  isFull,
  MAX_INCIDENTS,
  OVERLAP,
  openIncident,
  type PastIncident,
  withAttacker,
} from "./incident.ts";

/** New keys of one minute that are compared with incidents. Those of a flood are only counted. */
const MAX_NEW_KEYS = 20;

/**
 * Takes a minute in which keys fired. Incidents that ended before it are no longer among `before`. Whether a new key belongs
 * to an open incident depends on the events that they share. The first case that applies decides, the strongest key first:
 *
 * | new key                       | overlap with an open incident                             | does                 | role     |
 * |-------------------------------|-----------------------------------------------------------|----------------------|----------|
 * | any                           | it was quiet for half an hour, and its incident is open   | joins it again       | `joined` |
 * | JA4, user agent, network, URL | three tenths of its events, or of the incident's          | joins it             | `facet`  |
 * | JA4, user agent, network, URL | less, but such a key of an incident is active             | joins that incident  | `apart`  |
 * | address                       | three tenths of its events, or of the incident's          | joins it             | `joined` |
 * | address                       | less, but an address of the incident is linked with it    | joins it             | `joined` |
 * | any                           | none of these, and fewer than five incidents are open     | opens an incident    | `opened` |
 * | any                           | none of these                                             | joins the oldest one | `apart`  |
 *
 * A `facet` describes an attacker that has a name already, so it is not news. Every other role is. An address joins no incident of
 * which the verdict leans to nobody attacking: who attacks among the visitors of a rule that misfires is another cause.
 */
export function followFired(
  before: readonly Incident[],
  { minute, fires, more }: FiredMinute,
  { eventsOf, former, benign = NONE }: FiringContext,
): readonly Incident[] {
  let incidents = before;
  const newKeys = findNewKeys(incidents, { minute, fires });
  for (const fire of fires) {
    const holder = newKeys.includes(fire) ? undefined : holderOf(incidents, fire, minute);
    if (holder !== undefined)
      incidents = replace(incidents, holder, withAttacker(holder, renew(holder, fire, minute)));
  }
  if (hasRoom(incidents))
    for (const fire of newKeys.slice(0, MAX_NEW_KEYS))
      incidents = place(incidents, fire, minute, { former, benign, eventsOf });
  const named = new Set(incidents.flatMap(({ attackers }) => attackers.map(attackerIdOf)));
  const unnamed = newKeys.filter((fire) => !named.has(attackerIdOf(fire))).length + more;
  const [oldest] = incidents;
  if (unnamed === 0 || oldest === undefined) return incidents;
  return replace(incidents, oldest, { ...oldest, unnamed: Math.max(oldest.unnamed, unnamed) });
}

/** State with which new keys are compared. */
export interface FiringContext {
  /**
   * Returns a key's events in the zone's hour that ends with the minute, without known sources; may return none if every key is
   * known.
   */
  readonly eventsOf: EventsOfKey;
  /** Incidents that have ended lately. */
  readonly former: readonly PastIncident[];
  /** The names of open incidents of which the latest verdict leans to nobody attacking. */
  readonly benign?: ReadonlySet<string>;
}

const NONE: ReadonlySet<string> = new Set();

/** Returns whether `followFired` compares events of the minute's hour. In most minutes all keys are known. */
export function comparesEvents(incidents: readonly Incident[], fired: FiredMinute): boolean {
  return hasRoom(incidents) && findNewKeys(incidents, fired).length > 0;
}

/** Ends the incidents in which nothing fired for half an hour before `minute`. */
export function endIncidents(
  incidents: readonly Incident[],
  minute: number,
): { readonly open: readonly Incident[]; readonly ended: readonly PastIncident[] } {
  const [over, open] = [[] as PastIncident[], [] as Incident[]];
  for (const incident of incidents) {
    const closedAt = endOfIncident(incident);
    if (closedAt <= minute) over.push({ ...incident, closedAt });
    else open.push(incident);
  }
  return { open, ended: over };
}

function hasRoom(incidents: readonly Incident[]): boolean {
  return incidents.length < MAX_INCIDENTS || !incidents.every(isFull);
}

/** Returns the keys that no open incident has as an active attacker. */
function findNewKeys(
  incidents: readonly Incident[],
  { minute, fires }: Pick<FiredMinute, "minute" | "fires">,
) {
  return fires.filter((fire) => holderOf(incidents, fire, minute) === undefined);
}

function holderOf(incidents: readonly Incident[], fire: Fire, minute: number): Incident | undefined {
  const id = attackerIdOf(fire);
  return incidents.find(({ attackers }) =>
    attackers.some((one) => attackerIdOf(one) === id && isActive(one, minute)),
  );
}

function replace(all: readonly Incident[], one: Incident, by: Incident): readonly Incident[] {
  return all.map((incident) => (incident === one ? by : incident));
}

/** Returns the known attacker after a further minute over its line. */
function renew({ attackers }: Incident, fire: Fire, minute: number): Attacker {
  const id = attackerIdOf(fire);
  const known = attackers.find((one) => attackerIdOf(one) === id) as Attacker;
  const strongest = fire.score > known.score ? fire : known;
  const { role, since } = known;
  return { ...pickFire(strongest), role, since, lastFiredAt: minute + 1 };
}

function pickFire(fire: Fire): Fire {
  const { kind, key, members, usualMembers, windowMinutes, count, usual, threshold, score, burst } = fire;
  const own = { kind, key, members, usualMembers, windowMinutes, count, usual, threshold, score };
  return burst === undefined ? own : { ...own, burst };
}

function place(
  incidents: readonly Incident[],
  fire: Fire,
  minute: number,
  { former, benign = NONE, eventsOf }: FiringContext,
): readonly Incident[] {
  const from = minute - fire.windowMinutes;
  const own = eventsOf(fire.kind, fire.key).filter((event) => event.minute > from);
  const attacker: Attacker = {
    ...fire,
    role: "opened",
    since: minute + 1,
    lastFiredAt: minute + 1,
  };
  const compared = { from, own, minute, eventsOf };
  const found = findHolder(incidents, attacker, compared, benign);
  if (found === null) return [...incidents, openIncident(attacker, nameFor(attacker, incidents, former))];
  const { holder, role } = found;
  return replace(incidents, holder, withAttacker(holder, { ...attacker, role }));
}

/** How long after its end an incident that comes back has the same name. */
const COMES_BACK_MINUTES = 30;

function nameFor(
  attacker: Attacker,
  incidents: readonly Incident[],
  former: readonly PastIncident[],
): string {
  const id = attackerIdOf(attacker);
  const before = former.findLast(
    ({ attackers, closedAt, name }) =>
      attacker.since - closedAt <= COMES_BACK_MINUTES &&
      attackers.some((one) => attackerIdOf(one) === id) &&
      !incidents.some((incident) => incident.name === name),
  );
  const inMinute = incidents.filter(({ openedAt }) => openedAt === attacker.since).length;
  return before?.name ?? `${attacker.since}.${inMinute + 1}`;
}

interface Compared {
  /** The events after this minute are compared. */
  readonly from: number;
  /** Those of them that are the new key's. */
  readonly own: readonly MinuteEvent[];
  readonly minute: number;
  readonly eventsOf: EventsOfKey;
}

type EventsOfKey = (kind: SourceKind, key: string) => readonly MinuteEvent[];

/**
 * Returns the events of an hour by key. Each kind of key is grouped once, when it is first asked for, because an address or a URL is
 * read at a cost: with hundreds of attackers in an hour of tens of thousands of events nothing else could be done meanwhile.
 */
export function groupByKey(hour: readonly MinuteEvent[]): EventsOfKey {
  const groups = new Map<SourceKind, Map<string, MinuteEvent[]>>();
  return (kind, key) => {
    let byKey = groups.get(kind);
    if (byKey === undefined) {
      byKey = Map.groupBy(hour, (event) => sourceKeyOf(kind, event));
      groups.set(kind, byKey);
    }
    return byKey.get(key) ?? [];
  };
}

/** Returns the same without known sources. Requests and timers run between parts of the hour. */
export async function groupInTurns(
  hour: readonly MinuteEvent[],
  isKnown: KnownSources["isKnown"],
): Promise<EventsOfKey> {
  const groups = new Map(SOURCE_KINDS.map((kind) => [kind, new Map<string, MinuteEvent[]>()]));
  for await (const part of inTurns(hour))
    for (const event of part.filter((one) => !isKnown(one)))
      for (const [kind, byKey] of groups) {
        const key = sourceKeyOf(kind, event);
        const own = byKey.get(key);
        if (own === undefined) byKey.set(key, [event]);
        else own.push(event);
      }
  return (kind, key) => groups.get(kind)?.get(key) ?? [];
}

/** Returns the incident that the new key joins; null if it opens one. */
function findHolder(
  incidents: readonly Incident[],
  attacker: Attacker,
  compared: Compared,
  benign: ReadonlySet<string>,
): { holder: Incident; role: AttackerRole } | null {
  const id = attackerIdOf(attacker);
  const former = incidents.find(({ attackers }) => attackers.some((one) => attackerIdOf(one) === id));
  if (former !== undefined) return { holder: former, role: "joined" };
  const open = isAddress(attacker) ? incidents.filter(({ name }) => !benign.has(name)) : incidents;
  const overlapping = findOverlap(open, compared);
  if (isAddress(attacker)) {
    const isLinked = createLinkTest(
      attacker.key,
      (key) => compared.eventsOf("rules_per_ip", key),
      compared.minute - LONGEST_WINDOW,
    );
    const linked = open.find((incident) => activeAttackers(incident, compared.minute).some(isLinked));
    const holder = overlapping ?? linked;
    if (holder !== undefined) return { holder, role: "joined" };
  } else {
    if (overlapping !== undefined) return { holder: overlapping, role: "facet" };
    const holder = incidents.find((incident) =>
      activeAttackers(incident, compared.minute).some((one) => !isAddress(one)),
    );
    if (holder !== undefined) return { holder, role: "apart" };
  }
  const [oldest] = incidents;
  return oldest === undefined || incidents.length < MAX_INCIDENTS ? null : { holder: oldest, role: "apart" };
}

/** Returns the incident that shares most, of those that share enough. */
function findOverlap(
  incidents: readonly Incident[],
  { from, own, minute, eventsOf }: Compared,
): Incident | undefined {
  let best: { incident: Incident; jaccard: number } | undefined;
  for (const incident of incidents) {
    // Facets are left out: a network or a path of many would make everything overlap.
    const named = activeAttackers(incident, minute).filter(({ role }) => role !== "facet");
    const theirs = new Set(
      named.flatMap(({ kind, key }) => eventsOf(kind, key).filter((event) => event.minute > from)),
    );
    const common = own.filter((event) => theirs.has(event)).length;
    const share = Math.max(common / Math.max(own.length, 1), common / Math.max(theirs.size, 1));
    const jaccard = common / Math.max(own.length + theirs.size - common, 1);
    if (share >= OVERLAP && jaccard > (best?.jaccard ?? 0)) best = { incident, jaccard };
  }
  return best?.incident;
}

/** Returns the attacker that attacks most: of the active ones, or of all, the furthest above its line. */
export function strongestOf(
  { attackers }: Pick<Incident, "attackers">,
  minute: number,
): Attacker | undefined {
  const active = attackers.filter((attacker) => isActive(attacker, minute));
  const [first, ...others] = active.length > 0 ? active : attackers;
  return others.reduce(
    (one, other) => (one !== undefined && overZ(one) >= overZ(other) ? one : other),
    first,
  );
}
