/** Judges the source series of a minute. */

import { MINUTE_MS } from "#lib/units.ts";
import { SOURCE_KINDS, type SourceKind, WINDOWS } from "#model/kinds.ts";
import { type Finding, judgeMinute } from "../episode.ts";
import type { Thresholds } from "../thresholds/thresholds.ts";
import type { UsualOf } from "./distinct-members.ts";
import type { SourceCounter, SourceMinute } from "./source-counter.ts";
import { type SourceEvent, toSourceAddress, toSourcePath } from "./source-event.ts";
import { findBursts, floorOf, isOneRequest, SOURCE_Z } from "./source-thresholds.ts";

/** The most keys of one minute that are looked at one by one. A flood of addresses has thousands. */
const MAX_FIRES = 50;

/**
 * A key at or over the line of its series, with its strongest window. `count` is what exceeds the usual; of an address with
 * a burst in one minute, it is the events or rules of this minute.
 */
export interface Fire extends Finding {
  readonly kind: SourceKind;
  /** Hostile text. */
  readonly key: string;
  /** Different members of the key, and how many of them are usual for it. `count` is their difference. */
  readonly members: number;
  readonly usualMembers: number;
  /** Events and different rules of the minute in which the address reached a fixed line. */
  readonly burst?: { readonly events: number; readonly rules: number } | undefined;
}

/** A minute in which a key reached its line. */
export interface FiredMinute {
  /** Since the epoch. */
  readonly minute: number;
  /** The furthest above its line first. */
  readonly fires: readonly Fire[];
  /** How many further keys reached their lines. */
  readonly more: number;
}

/** The inputs for judging one minute. */
export interface Judging {
  readonly counter: SourceCounter;
  readonly usualOf: UsualOf;
  readonly thresholdsOf: (kind: SourceKind) => Thresholds;
  /** In a zone's first day only the fixed lines of addresses count. */
  readonly isFirstDay: boolean;
}

/** Returns the keys of a minute that was just closed and that reach their lines; null without any. */
export function judgeSources(minute: number, counts: SourceMinute, judging: Judging): FiredMinute | null {
  const { counter, usualOf, thresholdsOf, isFirstDay } = judging;
  const kinds = isFirstDay ? (["rules_per_ip"] as const) : SOURCE_KINDS;
  let fires = kinds.flatMap((kind): Fire[] => {
    // Thresholds take longer than counting, and most minutes of most zones need none.
    if (counts[kind].every((count) => count < floorOf(kind))) return [];
    const thresholds = thresholdsOf(kind);
    if (judgeMinute(counts[kind], thresholds) === null) return [];
    return counter.reaching(kind, minute, usualOf, thresholds.threshold).flatMap((one): Fire[] => {
      const finding = judgeMinute(one.excess, thresholds);
      if (finding === null) return [];
      const members = one.counts[WINDOWS.indexOf(finding.windowMinutes)] ?? 0;
      return [{ ...finding, kind, key: one.key, members, usualMembers: members - finding.count }];
    });
  });
  if (isFirstDay && fires.length > 0) {
    const busy = new Map(counter.busiest(minute).map((one) => [one.address, one]));
    const isOne = ({ key, members }: Fire) => {
      const one = busy.get(key);
      return one !== undefined && isOneRequest(one, members);
    };
    fires = fires.filter((fire) => !isOne(fire));
  }
  const named = new Set(fires.filter(({ kind }) => kind === "rules_per_ip").map(({ key }) => key));
  fires.push(...findBursts(minute, judging).filter(({ key }) => !named.has(key)));
  if (fires.length === 0) return null;
  fires.sort((one, other) => overZ(other) - overZ(one) || (one.key < other.key ? -1 : 1));
  return { minute, fires: fires.slice(0, MAX_FIRES), more: Math.max(fires.length - MAX_FIRES, 0) };
}

/** Returns how many deviations a key lies above the line of its series. */
export function overZ({ kind, score }: Pick<Fire, "kind" | "score">): number {
  return score - SOURCE_Z[kind];
}

/** A scanner triggers so many different rules with one address in its first seconds. */
const MANY_RULES = 5;
/** A botnet brings so many different addresses with one fingerprint, or on one path, in its first seconds. */
const MANY_ADDRESSES = 10;

/**
 * Returns whether the events of the last minute look like an attack that begins: one address with many rules, or many
 * addresses with one JA4 or on one path. Everyday traffic may look so, too: it decides only how soon a zone is polled again.
 */
export function looksRising(
  events: readonly (SourceEvent & { readonly occurredAt: number })[],
  nowMs: number,
): boolean {
  const members = new Map<string, Set<string>>();
  const reaches = (key: string, member: string | null, most: number) => {
    if (!member) return false;
    const found = members.get(key) ?? new Set();
    members.set(key, found.add(member));
    return found.size >= most;
  };
  return events.some(({ occurredAt, ip, ruleId, ja4, url }) => {
    if (occurredAt <= nowMs - MINUTE_MS) return false;
    const address = ip ? toSourceAddress(ip) : null;
    return (
      (address !== null && reaches(`ip ${address}`, ruleId, MANY_RULES)) ||
      (ja4 && reaches(`ja4 ${ja4}`, address, MANY_ADDRESSES)) ||
      (url && reaches(`url ${toSourcePath(url)}`, address, MANY_ADDRESSES))
    );
  });
}
