import { isNoVisitor } from "#model/ip-address.ts";
import { isProgramAgent } from "#model/request-facts.ts";
import { isSumRule } from "#model/rules.ts";
import { toSourceAddress, toSourcePath } from "../sources/source-event.ts";
import type { MinuteEvent } from "../sources/usual-rules.ts";
import { addTo, sortCounts } from "../verdict/requests.ts";
import { createAttackerTest, type Incident, isAddress, newestNews, OVERLAP, spanOf } from "./incident.ts";

/** A rule's spike is a member if the attackers of the zone's incidents hold so much of its events, or it of theirs. */
const MEMBER_SHARE = 0.7;
/**
 * A rule that opens so soon after an incident rises with it, also if its attackers send a smaller share of the events: few of their
 * addresses have reached their lines by then.
 */
const YOUNG_MINUTES = 10;

/**
 * Returns the incident that a rule's spike is a member of; null if its events are mostly of others. `events` are those of
 * the rule in the spike's window. The attackers of all incidents count together, those that are quiet too, because several
 * scanners, or one that changes its address, may lift one rule; the incident with most of the events has the member.
 *
 * A rule that lifts a fingerprint, network or path is also a member if most requests of that incident match it: a browser that many
 * visitors use is a part of them. An address is not: an attacker is somebody else among the visitors of a rule that misfires. Only a
 * rule that opens just after the incident (`opensNow`) rises with it, or one that opens while the incident's attackers do the same on
 * its path. `inHour` are all events of the zone in the hour.
 */
export function findMembership<One extends Incident>(
  events: readonly MinuteEvent[],
  incidents: readonly One[],
  inHour: readonly MinuteEvent[] = [],
  opensNow = false,
): One | null {
  if (events.length === 0 || incidents.length === 0) return null;
  const tests = incidents.map((incident) => ({
    incident,
    isOf: createAttackerTest(incident.attackers),
    matched: 0,
  }));
  let matched = 0;
  for (const event of events) {
    const holders = tests.filter(({ isOf }) => isOf(event));
    for (const holder of holders) holder.matched += 1;
    if (holders.length > 0) matched += 1;
  }
  if (matched >= MEMBER_SHARE * events.length)
    return tests.reduce((most, one) => (one.matched > most.matched ? one : most)).incident;
  const { from, to } = spanOf(events);
  const own = describeCause(events);
  const lifted = tests.find((one) => {
    const { incident, isOf } = one;
    const risesWith = opensNow && to < incident.openedAt + YOUNG_MINUTES;
    const mayLift = risesWith || !incident.attackers.some(isAddress);
    if (risesWith && one.matched >= OVERLAP * events.length) return true;
    if (!opensNow && !mayLift) return false;
    const theirs = inHour.filter((event) => event.minute >= from && isOf(event));
    if (theirs.length === 0) return false;
    const other = describeCause(theirs);
    const isLifted = mayLift && shareIn(other.requests, own.requests, theirs.length) >= MEMBER_SHARE;
    return isLifted || (opensNow && isSameCrowd(own, other));
  });
  return lifted?.incident ?? null;
}

/**
 * Returns the open spike that has the same cause as the events of a rule; null if there is none. The first row that applies decides:
 *
 * | the rule and the other have in common                                                                  |
 * |--------------------------------------------------------------------------------------------------------|
 * | one client: a network with a program's user agent, or a fingerprint with a user agent if no address is known |
 * | seven tenths of the rule's requests                                                                    |
 * | the most frequent path, and seven tenths of the rule's senders                                         |
 * | the path of seven tenths of the events of each, seven tenths of the rule's clients, and how many send  |
 *
 * The last row is for many texts, each of which matches other rules: of the visitors of a form, or of a botnet. A request is known by its
 * sender, URL and minute. One whose sender or URL is missing is unknown: it is nobody else's.
 */
export function findSameCause<One extends { readonly events: readonly MinuteEvent[] }>(
  events: readonly MinuteEvent[],
  others: readonly One[],
): One | null {
  if (events.length === 0) return null;
  const own = describeCause(events);
  let best: { readonly one: One; readonly share: number } | null = null;
  for (const one of others) {
    const other = describeCause(one.events);
    if (own.client !== "" && own.client === other.client) return one;
    const isOnPath = own.path !== "" && own.path === other.path;
    const requests = shareIn(own.requests, other.requests, events.length);
    const senders = isOnPath ? shareIn(own.senders, other.senders, sumOf(own.senders)) : 0;
    const share = Math.max(requests, senders, isSameCrowd(own, other) ? MEMBER_SHARE : 0);
    if (share >= MEMBER_SHARE && share > (best?.share ?? 0)) best = { one, share };
  }
  return best?.one ?? null;
}

/** From so many senders on, they are many. */
const MANY_SENDERS = 5;

/**
 * Returns whether senders do on one path what others do there: most of their requests are on it, and they have the others' clients.
 * Few senders among many are somebody else, unless all use one client.
 */
function isSameCrowd(own: Cause, other: Cause): boolean {
  if (own.target === "" || own.target !== other.target) return false;
  if (shareIn(own.clients, other.clients, sumOf(own.clients)) < MEMBER_SHARE) return false;
  const isMany = (one: Cause) => one.senders.size >= MANY_SENDERS;
  return isMany(own) === isMany(other) || (own.tool !== "" && own.tool === other.tool);
}

/**
 * Returns the open spike that holds the alert of a rule that only adds others up: the one with the same cause, or with most of its
 * requests if seven tenths of these are also of any of the others. Null if there is none.
 */
export function findSummed<One extends { readonly events: readonly MinuteEvent[] }>(
  events: readonly MinuteEvent[],
  others: readonly One[],
): One | null {
  const same = findSameCause(events, others);
  if (same !== null || events.length === 0) return same;
  const { requests } = describeCause(events);
  const described = others.map((one) => ({ one, requests: describeCause(one.events).requests }));
  const all = new Map(described.flatMap((other) => [...other.requests]));
  if (shareIn(requests, all, events.length) < MEMBER_SHARE) return null;
  const shareOf = (other: (typeof described)[number]) => shareIn(requests, other.requests, events.length);
  return described.reduce((most, other) => (shareOf(other) > shareOf(most) ? other : most)).one;
}

/** A rule's spike, as one of several that may hold the alert of another. The id is null if it opens now. */
export interface LeadRank {
  readonly id: number | null;
  readonly ruleId: string;
  readonly score: number;
}

/**
 * Compares two spikes: the one that may hold the alert of the other comes first. That is the older one, of those that open together
 * the strongest. A rule that only adds others up is part of their alerts, never the other way round.
 */
export function compareLeads(one: LeadRank, other: LeadRank): number {
  const ageOf = ({ id }: LeadRank) => id ?? Number.MAX_SAFE_INTEGER;
  return (
    Number(isSumRule(one.ruleId)) - Number(isSumRule(other.ruleId)) ||
    ageOf(one) - ageOf(other) ||
    other.score - one.score ||
    (one.ruleId < other.ruleId ? -1 : 1)
  );
}

/** A rule's open spike without a lead, and the events of its window. */
interface AloneRule extends LeadRank {
  readonly events: readonly MinuteEvent[];
}

/** For so long after an attacker got a name, the rules that were there before are compared with its incident. */
const ADOPTED_MINUTES = 15;

/** The incidents of a zone that are open before the minute `end`. */
interface Compared<Of extends Incident> {
  readonly incidents: readonly Of[];
  readonly end: number;
}

/**
 * Returns the rules of a zone that are compared with incidents: those that open now, those that only add others up, and all of them
 * while the newest attacker is young, so that an incident adopts the rules that were there before it. None if there is nothing
 * to compare with. `alone` are all open rules that are part of nothing.
 */
export function findCompared<One extends LeadRank>(
  alone: readonly One[],
  { incidents, end }: Compared<Incident>,
): One[] {
  if (incidents.length === 0 && alone.length < 2) return [];
  const isNew = Math.max(0, ...incidents.map(newestNews)) > end - ADOPTED_MINUTES;
  return alone.filter(({ id, ruleId }) => isNew || id === null || isSumRule(ruleId));
}

/**
 * Returns the lead of each rule whose alert is part of another: an incident whose attackers send its events, or, for a rule that
 * opens now or only adds others up, a rule with the same cause. `inHour` are the zone's events of the last hour.
 */
export function joinRules<One extends AloneRule, Of extends Incident>(
  alone: readonly One[],
  { inHour, ...compared }: Compared<Of> & { readonly inHour: readonly MinuteEvent[] },
): ReadonlyMap<One, Of | One> {
  const found = new Map<One, Of | One>();
  for (const one of findCompared(alone, compared).toSorted(compareLeads)) {
    const isSum = isSumRule(one.ruleId);
    const incident = findMembership(one.events, compared.incidents, inHour, one.id === null);
    if (incident !== null) found.set(one, incident);
    if (incident !== null || (one.id !== null && !isSum)) continue;
    const leads = alone.filter((other) => !found.has(other) && compareLeads(other, one) < 0);
    const lead = (isSum ? findSummed : findSameCause)(one.events, leads.toSorted(compareLeads));
    if (lead !== null) found.set(one, lead);
  }
  return found;
}

/** What the requests of a spike have in common. Hostile text, with the number of its events. */
interface Cause {
  readonly requests: ReadonlyMap<string, number>;
  readonly senders: ReadonlyMap<string, number>;
  /** Fingerprints; the user agent where there is none. */
  readonly clients: ReadonlyMap<string, number>;
  /** The most frequent path. */
  readonly path: string;
  /** The path of seven tenths of the events; empty if there is none, or if it is the root of the site. */
  readonly target: string;
  /** The client of seven tenths of the events; empty if there is none. */
  readonly tool: string;
  /** A tool that is the same whatever address it has; empty if there is none. */
  readonly client: string;
}

function describeCause(events: readonly MinuteEvent[]): Cause {
  const [requests, senders] = [new Map<string, number>(), new Map<string, number>()];
  const [paths, clients, programs] = [
    new Map<string, number>(),
    new Map<string, number>(),
    new Map<string, number>(),
  ];
  for (const { ip, asn, ja4, ua, url, minute } of events) {
    const sender = ip === null || isNoVisitor(ip) ? "" : toSourceAddress(ip);
    const client = ja4 || ua || "";
    if (asn && ua && isProgramAgent(ua)) addTo(programs, `${asn} ${ua}`);
    else if (sender === "" && ja4 && ua) addTo(programs, `${ja4} ${ua}`);
    const by = sender || `${ja4 ?? ""} ${ua ?? ""}`.trim();
    if (by !== "" && url) addTo(requests, `${by} ${url} ${minute}`);
    if (sender !== "") addTo(senders, sender);
    if (client !== "") addTo(clients, client);
    if (url !== null && url !== "") addTo(paths, toSourcePath(url));
  }
  const mostOf = (counts: ReadonlyMap<string, number>) => {
    const [most = ""] = sortCounts(counts);
    return { most, isMost: (counts.get(most) ?? 0) >= MEMBER_SHARE * events.length };
  };
  const [path, tool, program] = [mostOf(paths), mostOf(clients), mostOf(programs)];
  return {
    requests,
    senders,
    clients,
    path: path.most,
    target: path.isMost && path.most !== "/" ? path.most : "",
    tool: tool.isMost ? tool.most : "",
    client: program.isMost && senders.size !== 1 ? program.most : "",
  };
}

/** Returns how much of all events belongs to texts that others have, too. */
function shareIn(own: ReadonlyMap<string, number>, others: ReadonlyMap<string, number>, all: number): number {
  let common = 0;
  for (const [text, count] of own) if (others.has(text)) common += count;
  return all === 0 ? 0 : common / all;
}

function sumOf(counts: ReadonlyMap<string, number>): number {
  let sum = 0;
  for (const count of counts.values()) sum += count;
  return sum;
}
