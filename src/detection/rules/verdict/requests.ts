/** Groups and counts requests. */
import { isNoVisitor } from "#model/ip-address.ts";
import type { ActionClass } from "#model/kinds.ts";
import { toUrlPart } from "#model/record-parts.ts";
import { FACT_NAMES, type FactName, NO_FACTS, SAME_REQUEST_MS } from "#model/request-facts.ts";
import { isSumRule } from "#model/rules.ts";
import { toSourceAddress } from "../sources/source-event.ts";
import type { VerdictEvent } from "./evidence.ts";

/** A request has one event per rule. Its fate is the first of these actions that one of them has: one block means blocked. */
const DECIDES = ["blocked", "challenged", "other", "logged"] as const satisfies readonly ActionClass[];

/** One request of a visitor, a client or an attacker: an event for each rule that it matched. Texts are hostile. */
export interface VerdictRequest {
  readonly at: number;
  /** The sender as the source series count it; empty if the address is not known or no visitor's. */
  readonly address: string;
  readonly asn: string;
  readonly ja4: string;
  readonly ua: string;
  readonly url: string;
  readonly action: ActionClass;
  /** The rules that it matched, without those that only add others up. */
  readonly rules: ReadonlySet<string>;
  readonly facts: Readonly<Record<FactName, boolean | null>>;
  /** Whether another rule's event of it holds an idiom of attacks, or names a tool of attackers. */
  readonly isHostileElsewhere: boolean;
  /** Equal for requests of one address with the same path and the same matched texts; null if the texts are not known. */
  readonly text: string | null;
}

interface Group extends Omit<VerdictRequest, "text" | "rules"> {
  action: ActionClass;
  isHostileElsewhere: boolean;
  facts: Record<FactName, boolean | null>;
  readonly rules: Set<string>;
  /** All of its rules: no rule matches a request twice. */
  readonly all: Set<string>;
  readonly keys: Set<number>;
  isGet: boolean;
}

/**
 * Returns the requests of events. Events are of one request if their records name the same one. Without a name, they are if the
 * same address sent the same URL within two seconds, and no rule occurs twice. `others` are events of other rules: they say of these
 * requests that one was stopped, or attacks, and nothing else, because the weights were fitted to the events of one rule.
 */
export function groupRequests(
  events: readonly VerdictEvent[],
  others: readonly VerdictEvent[] = [],
): VerdictRequest[] {
  const groups: Group[] = [];
  const byId = new Map<string, Group>();
  const byUrl = new Map<string, Group[]>();
  const addressOf = createReader();
  for (const [index, event] of [...events, ...others].entries()) {
    const { requestId, ...facts } = event.facts ?? NO_FACTS;
    const address = addressOf(event.ip);
    const near = `${address} ${event.url}`;
    const known =
      requestId === ""
        ? byUrl
            .get(near)
            ?.find(({ at, all }) => Math.abs(at - event.at) <= SAME_REQUEST_MS && !all.has(event.ruleId))
        : byId.get(requestId);
    const isOther = index >= events.length;
    if (known === undefined && isOther) continue;
    const group = known ?? openGroup(event, address);
    group.all.add(event.ruleId);
    if (DECIDES.indexOf(event.action) < DECIDES.indexOf(group.action)) group.action = event.action;
    if (isOther) {
      group.isHostileElsewhere ||= facts.hasIdiom === true || facts.isTool === true;
      continue;
    }
    if (known === undefined) {
      groups.push(group);
      if (requestId !== "") byId.set(requestId, group);
      else byUrl.set(near, [...(byUrl.get(near) ?? []).slice(-3), group]);
    }
    if (!isSumRule(event.ruleId)) group.rules.add(event.ruleId);
    if (facts.matchedKey !== null) group.keys.add(facts.matchedKey);
    if (facts.method !== "") group.isGet = facts.method === "GET";
    for (const name of FACT_NAMES) group.facts[name] = either(group.facts[name], facts[name]);
  }
  return groups.map(toRequest);
}

function toRequest(group: Group): VerdictRequest {
  const { at, address, asn, ja4, ua, url, action, rules, facts, isHostileElsewhere } = group;
  return { at, address, asn, ja4, ua, url, action, rules, facts, text: textOf(group), isHostileElsewhere };
}

function openGroup({ at, asn, ja4, ua, url, action }: VerdictEvent, address: string): Group {
  const facts = Object.fromEntries(FACT_NAMES.map((name) => [name, null])) as Group["facts"];
  const sets = { rules: new Set<string>(), all: new Set<string>(), keys: new Set<number>() };
  return { at, address, asn, ja4, ua, url, action, facts, ...sets, isGet: true, isHostileElsewhere: false };
}

/** Without a record, only the URL of a GET with a query is known to hold what matched. Without a URL, no path is known. */
function textOf({ address, ua, url, keys, isGet }: Group): string | null {
  if (address === "" || url === "") return null;
  if (keys.size > 0)
    return `${address} ${ua} ${toUrlPart("path", url)} ${[...keys].sort((a, b) => a - b).join(" ")}`;
  return isGet && url.includes("?") ? `${address} ${ua} ${url}` : null;
}

function either(one: boolean | null, other: boolean | null): boolean | null {
  return one === true || other === true ? true : (one ?? other);
}

/** Reading an IPv6 address costs more than all counting. */
function createReader(): (ip: string) => string {
  const known = new Map<string, string>();
  return (ip) => {
    const before = known.get(ip);
    if (before !== undefined) return before;
    const address = isNoVisitor(ip) ? "" : toSourceAddress(ip);
    known.set(ip, address);
    return address;
  };
}

/** Counts requests by the action that decided their fate. */
export function countActions(requests: readonly VerdictRequest[]): Record<ActionClass, number> {
  const counts = { blocked: 0, challenged: 0, logged: 0, other: 0 };
  for (const { action } of requests) counts[action] += 1;
  return counts;
}

/** Returns how often each text occurs; an empty one is not known. */
export function countBy<T>(all: readonly T[], read: (one: T) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const one of all) {
    const text = read(one);
    if (text !== "") addTo(counts, text);
  }
  return counts;
}

export function addTo(counts: Map<string, number>, text: string, more = 1): void {
  counts.set(text, (counts.get(text) ?? 0) + more);
}

/** Returns the counted texts, the most frequent first. */
export function sortCounts(counts: ReadonlyMap<string, number>): string[] {
  return [...counts].sort(([, one], [, other]) => other - one).map(([text]) => text);
}

/** Returns the different texts that are not empty, the most frequent first. */
export function mostFrequent(texts: readonly string[]): string[] {
  return sortCounts(countBy(texts, (text) => text));
}

/** Returns at most `most` items of a list, evenly spread over it. */
export function spread<T>(list: readonly T[], most: number): readonly T[] {
  const step = Math.max(1, list.length / most);
  return list.filter((_, index) => index % step < 1);
}
