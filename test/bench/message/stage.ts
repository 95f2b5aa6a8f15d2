import { MINUTE_MS, SECOND_MS } from "#lib/units.ts";
import type { Client } from "./clients.ts";
import type { Dice } from "./dice.ts";
import { type Hit, matchRequest, type Request } from "./match-request.ts";
import { isResponseRule, ruleOf } from "./rules.ts";
import type { Zone } from "./zones.ts";

export type Action = "block" | "challenge" | "log";

/** One matched rule of a request. */
export interface Event {
  readonly at: number;
  readonly request: Request;
  readonly requestId: string;
  readonly hit: Hit;
  readonly action: Action;
  /** The name of the situation's case, or null for everyday traffic. */
  readonly of: string | null;
}

export type Stage = ReturnType<typeof createStage>;

const LOGINS_A_MINUTE = 12;
const REQUESTS_A_MINUTE = 240;
const PASS_MS = 30 * MINUTE_MS;
const SHARE_THAT_RETRIES = 0.6;

/** Returns the edge before a site: agents send requests, each matched rule becomes an event. */
export function createStage(zone: Zone, dice: Dice) {
  const events: Event[] = [];
  const passes = new Map<string, number>();
  const counts = new Map<string, { minute: number; count: number }>();

  /** Returns whether the address has sent more than `most` in the minute. Called once per request and limit. */
  function isOver(key: string, at: number, most: number): boolean {
    const minute = Math.floor(at / MINUTE_MS);
    const one = counts.get(key);
    if (one?.minute !== minute) counts.set(key, { minute, count: 1 });
    else one.count += 1;
    return (counts.get(key)?.count ?? 0) > most;
  }

  function limitHits(at: number, { client, method, path }: Request): Hit[] {
    if (!zone.hasLimits) return [];
    const hits: Hit[] = [];
    const isSignIn = method === "POST" && path === zone.site.login;
    if (isSignIn && isOver(`login ${client.ip}`, at, LOGINS_A_MINUTE))
      hits.push({ rule: "1048600", variable: "", matched: client.ip });
    if (isOver(client.ip, at, REQUESTS_A_MINUTE))
      hits.push({ rule: "1048601", variable: "", matched: client.ip });
    const isPretender = !client.isBrowser && client.session === null && client.token === undefined;
    if (isPretender && /^Mozilla\/5\.0 \((?!compatible)/.test(client.ua) && method === "POST")
      hits.push({ rule: "2097160", variable: "", matched: client.ja4 });
    return hits;
  }

  /** Returns whether the edge stopped the request. */
  function send(at: number, request: Request, of: string | null = null): boolean {
    const { client } = request;
    const who = `${client.ip} ${client.ua}`;
    const paranoia = zone.isLevelRaised && at < zone.situationMs ? 1 : zone.paranoia;
    const hits = matchRequest(request, paranoia, zone.site.methods);
    const limits = limitHits(at, request);
    if (hits.length + limits.length === 0) return false;
    const score = hits.reduce((sum, { rule }) => sum + ruleOf(rule).score, 0);
    const isOverLimit = score >= zone.limit || hits.some(({ rule }) => isResponseRule(rule));
    const mode = zone.mode;
    if (mode === "challenge" && isOverLimit && (passes.get(who) ?? 0) > at) return false;
    if (mode === "challenge" && isOverLimit && client.isBrowser) passes.set(who, at + PASS_MS);
    const isStopped = mode !== "log" && (isOverLimit || limits.length > 0);
    const single: Action = isOverLimit && zone.isSingleStopped ? mode : "log";
    const requestId = dice.hex(32);
    const add = (hit: Hit, action: Action, later = 0) =>
      events.push({ at: Math.floor(at) + later, request, requestId, hit, action, of });
    for (const [index, hit] of hits.entries()) add(hit, single, index < 3 ? 0 : 1);
    for (const hit of limits) add(hit, mode === "log" ? "log" : "block");
    const isAnswer = hits.some(({ rule }) => isResponseRule(rule));
    if (isOverLimit && zone.sums !== "none") {
      const sum = isAnswer ? "959100" : "949110";
      add({ rule: sum, variable: "TX:ANOMALY_SCORE", matched: String(score) }, mode, 1);
      if (zone.sums === "both" && !isAnswer)
        add({ rule: "980130", variable: "TX:ANOMALY_SCORE", matched: String(score) }, "log", 1);
    }
    return isStopped;
  }

  /** Sends what a person sends: who is stopped tries again, some more than once. */
  function visit(at: number, request: Request, of: string | null = null): void {
    let again = at;
    for (let tries = 0; tries < 4; tries += 1) {
      const isStopped = send(again, request, of);
      if (!isStopped || zone.mode === "challenge" || !dice.chance(SHARE_THAT_RETRIES)) return;
      again += dice.between(4, 45) * SECOND_MS;
    }
  }

  /** Calls `act` at times that come `perMinute` times a minute in the mean. */
  function pace(
    from: number,
    minutes: number,
    perMinute: number,
    act: (at: number, index: number) => void,
  ): void {
    let index = 0;
    for (
      let at = from + dice.wait(MINUTE_MS / perMinute);
      at < from + minutes * MINUTE_MS;
      at += dice.wait(MINUTE_MS / perMinute)
    ) {
      act(at, index);
      index += 1;
    }
  }

  return { zone, dice, site: zone.site, start: zone.situationMs, events, send, visit, pace };
}

/** Returns the request of a draft, sent by a client. */
export const by = (client: Client, draft: Omit<Request, "client">): Request => ({ client, ...draft });
