import { type SourceEvent, sourceKeyOf } from "#detection/rules/sources/source-event.ts";
import { crawlerOfNetwork } from "#detection/rules/verdict/crawlers.ts";
import type { UsualValues, VerdictEvent, VerdictEvidence } from "#detection/rules/verdict/evidence.ts";
import { templateOf } from "#detection/rules/verdict/path-template.ts";
import { spread } from "#detection/rules/verdict/requests.ts";
import { HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { type ActionClass, SOURCE_KINDS, type VerdictTime } from "#model/kinds.ts";
import { type RequestDetails, SAME_REQUEST_MS } from "#model/request-facts.ts";
import {
  dueVerdictTime,
  MOST_EVENTS,
  MOST_RECORDS,
  type StoredVerdict,
  VERDICT_AFTER_MS,
} from "#model/verdict.ts";
import { createNearbyRules, createSenderHistory, createUsualReplay } from "./replay-history.ts";

/** An event with what the detectors do not read. What is left out is not known. */
export interface RecordedEvent extends SourceEvent {
  readonly action?: ActionClass;
  /** The fate of its request, for verdicts. Defaults to `action`. */
  readonly fate?: ActionClass;
  /** Epoch ms. Left out: the beginning of the minute. */
  readonly at?: number;
  readonly logId?: string;
  readonly request?: RequestDetails;
}

/** Spikes that wait for a verdict. In a flood of spikes the first ones have no later verdict. */
const MOST_SPIKES = 100;
/** The first and the last hours of an alert, which show whether it lasts. */
const COMPARED_MS = 2 * HOUR_MS;

interface Kept {
  readonly source: SourceEvent;
  readonly event: VerdictEvent;
  readonly request: RequestDetails | undefined;
}

/** A spike that is judged, as it is at the end of a minute. */
export interface JudgedSpike {
  readonly id: number;
  /** Null for an incident. */
  readonly ruleId: string | null;
  readonly attackers: readonly { readonly kind: (typeof SOURCE_KINDS)[number]; readonly key: string }[];
  /** Beginning of the window that opened it, and its opening; minutes since the epoch. */
  readonly since: number;
  readonly openedAt: number;
  /** The largest count so far. */
  readonly peak: number;
  readonly isOpen: boolean;
}

interface Followed {
  spike: JudgedSpike;
  readonly keys: Set<string>;
  readonly usual: UsualValues;
  /** The oldest first; at most twice as many as are judged. */
  events: Kept[];
  /** The names of their requests, and the events of other rules that these have. */
  requests: Set<string>;
  others: Set<Kept>;
  /** Number of events of the first hours. */
  first: number;
  readonly verdicts: StoredVerdict[];
}

/**
 * Judges the spikes of a replayed zone at each time with the evidence that the service would have: the events so far, and what
 * was usual before the day of the spike.
 */
export function createVerdictReplay(judge: (evidence: VerdictEvidence) => StoredVerdict) {
  const usual = createUsualReplay();
  const nearby = createNearbyRules();
  const senders = createSenderHistory();
  const followed = new Map<number, Followed>();
  let hour: Kept[] = [];
  let taken = 0;

  function take(source: RecordedEvent, minute: number): void {
    const { ruleId, ip, asn, ja4, ua, url, at = minute * MINUTE_MS, request } = source;
    taken += 1;
    const logId = source.logId ?? String(taken);
    const texts = { ip: ip ?? "", asn: asn ?? "", ja4: ja4 ?? "", ua: ua ?? "", url: url ?? "" };
    const facts = request ?? null;
    const event = {
      at,
      logId,
      ruleId: ruleId ?? "",
      action: source.fate ?? source.action ?? "other",
      ...texts,
      facts,
    };
    const kept: Kept = { source, event, request };
    const template = templateOf(event.url);
    usual.take(event, template, request?.hasSession === true);
    nearby.take({ ip: event.ip, ruleId: event.ruleId, template }, at);
    senders.take(event.ip, event.ruleId, at);
    hour.push(kept);
    if (taken % 10_000 === 0) hour = hour.filter((one) => one.event.at >= at - 2 * HOUR_MS);
    for (const one of followed.values()) {
      if (!one.spike.isOpen) continue;
      if (isOf(one, kept)) {
        add(one, kept);
        // Other rules' events of the request may have come before.
        for (let place = hour.length - 2; (hour[place]?.event.at ?? 0) >= at - SAME_REQUEST_MS; place -= 1)
          addOther(one, hour[place] as Kept);
      } else addOther(one, kept);
    }
  }

  function follow(spike: JudgedSpike): Followed {
    const before = followed.get(spike.id);
    const one = before ?? {
      spike,
      keys: new Set<string>(),
      usual: usual.read(),
      events: [],
      requests: new Set<string>(),
      others: new Set(),
      first: 0,
      verdicts: [],
    };
    const news = spike.attackers.map(({ kind, key }) => `${kind}=${key}`).filter((key) => !one.keys.has(key));
    const isWider = before === undefined || news.length > 0 || spike.since < one.spike.since;
    one.spike = spike;
    if (isWider) {
      for (const key of news) one.keys.add(key);
      const had = new Set(one.events);
      for (const kept of hour)
        if (kept.event.at >= spike.since * MINUTE_MS && !had.has(kept) && isOf(one, kept)) add(one, kept);
      one.events.sort((a, b) => a.event.at - b.event.at);
      for (const kept of hour) addOther(one, kept);
    }
    if (before === undefined) {
      followed.set(spike.id, one);
      const [oldest] = followed.keys();
      if (followed.size > MOST_SPIKES && oldest !== undefined) followed.delete(oldest);
    }
    return one;
  }

  function judgeAt(
    { spike, events, others, first, ...one }: Followed,
    look: VerdictTime,
    minute: number,
  ): StoredVerdict {
    const judgedAt = minute * MINUTE_MS;
    const { ruleId } = spike;
    const [since, openedAt] = [spike.since * MINUTE_MS, spike.openedAt * MINUTE_MS];
    const inWindow = events.filter(({ event }) => event.at >= since);
    const kept = inWindow.slice(-MOST_EVENTS).toReversed();
    const recent = events.filter(({ event }) => event.at >= judgedAt - COMPARED_MS).length;
    const recorded = kept.flatMap(({ event, request }) =>
      request === undefined ? [] : [[event.logId, request] as const],
    );
    const ips = new Set(kept.map(({ event }) => event.ip));
    return judge({
      look,
      judgedAt,
      openedAt,
      since,
      ruleId,
      events: kept.map(({ event }) => event),
      others: Array.from(others, ({ event }) => event),
      usualSenders: senders.read(ips, ruleId, since),
      usualPerHour: ruleId === null ? null : senders.perHour(ruleId, since),
      nearby: nearby.read(ips, judgedAt),
      requests: new Map(spread(recorded, MOST_RECORDS)),
      usual: { ...one.usual, hasCookies: usual.read().hasCookies },
      crawler: crawlerOfNetwork(kept.map(({ event }) => event)),
      lasting:
        VERDICT_AFTER_MS[look] < VERDICT_AFTER_MS["six-hours"] || first === 0
          ? null
          : recent / Math.min(first, MOST_EVENTS),
      peak: spike.peak,
    });
  }

  return {
    take,
    /** Returns the verdicts of a spike up to the end of a minute, the oldest first. Adds those that are due. */
    verdictsOf(spike: JudgedSpike, minute: number): readonly StoredVerdict[] {
      const one = follow(spike);
      const due = dueVerdictTime(spike.openedAt * MINUTE_MS, minute * MINUTE_MS, one.verdicts.at(-1)?.look);
      if (due !== null) one.verdicts.push(judgeAt(one, due, minute));
      return one.verdicts;
    },
    /** Judges spikes that were judged before this minute again, in place of the verdict at the same time. Returns how many. */
    judgeAgain(ids: readonly number[], minute: number): number {
      const nowMs = minute * MINUTE_MS;
      const stale = ids.flatMap((id) => {
        const one = followed.get(id);
        const look = one === undefined ? null : dueVerdictTime(one.spike.openedAt * MINUTE_MS, nowMs);
        if (one === undefined || look === null) return [];
        return (one.verdicts.at(-1)?.judgedAt ?? 0) < nowMs ? [{ one, look }] : [];
      });
      for (const { one, look } of stale) {
        if (one.verdicts.at(-1)?.look === look) one.verdicts.pop();
        one.verdicts.push(judgeAt(one, look, minute));
      }
      return stale.length;
    },
    knownOf: (id: number): readonly StoredVerdict[] => followed.get(id)?.verdicts ?? [],
    forget: (id: number) => void followed.delete(id),
  };
}

function isOf({ spike: { ruleId }, keys }: Followed, { source, event }: Kept): boolean {
  if (ruleId !== null) return event.ruleId === ruleId;
  return SOURCE_KINDS.some((kind) => keys.has(`${kind}=${sourceKeyOf(kind, source)}`));
}

function add(one: Followed, kept: Kept): void {
  const { at } = kept.event;
  const since = one.spike.since * MINUTE_MS;
  one.events.push(kept);
  one.requests.add(nameRequest(kept));
  if (at >= since && at < since + COMPARED_MS) one.first += 1;
  if (one.events.length <= 2 * MOST_EVENTS) return;
  one.events = one.events.slice(-MOST_EVENTS);
  one.requests = new Set(one.events.map(nameRequest));
}

function nameRequest({ event: { ip, url }, request }: Kept): string {
  return request?.requestId || `${ip} ${url}`;
}

/** Keeps an event of another rule if one of the alert's requests has it. An incident has the events of all rules. */
function addOther(one: Followed, kept: Kept): void {
  const { ruleId } = one.spike;
  if (ruleId === null || kept.event.ruleId === ruleId || !one.requests.has(nameRequest(kept))) return;
  one.others.add(kept);
  if (one.others.size > 8 * MOST_EVENTS) one.others = new Set([...one.others].slice(-4 * MOST_EVENTS));
}
