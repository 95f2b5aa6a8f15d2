/** Decides which attackers a firewall should block, and for how long. */
import ipaddr from "ipaddr.js";
import { DAY_MS, HOUR_MS, MINUTE_MS } from "#lib/units.ts";
import { isNetworkText, isNoVisitor, readAddress } from "#model/ip-address.ts";
import type { BlockKind, LeftOut, Mark, RequestClass, SourceKind } from "#model/kinds.ts";
import { noRequests, type SenderCount, type SharedKey } from "#model/review.ts";
import type { UsualValue } from "#model/stored-sources.ts";
import { isHostileWord, type StoredVerdict, SURE_ODDS } from "#model/verdict.ts";
import { toSourceAddress } from "../sources/source-event.ts";

/** The platform takes no more entries. */
export const MOST_ENTRIES = 5_000;
/** Visitors are looked for in so many days, and no entry lasts longer. */
export const LOOKS_BACK_DAYS = 30;
/** The share of a network's requests that must be hostile. */
const LEAST_HOSTILE = 0.5;
/** An attacker sends before it is over its line, and after. */
const AROUND_MS = HOUR_MS;

type Said = Pick<StoredVerdict, "judgedAt" | "said" | "odds" | "title">;

/** An incident with its attackers and verdicts; times in epoch ms. A rule that spikes by itself has no attackers. Keys are hostile text. */
export interface BlockIncident {
  readonly alertId: number | null;
  readonly ruleId: string;
  readonly openedAt: number;
  readonly lastActiveAt: number;
  readonly mark: Mark | null;
  /** `since`: the minute since the epoch in which the attacker was first over its line. */
  readonly attackers: readonly { readonly kind: SourceKind; readonly key: string; readonly since: number }[];
  /** The oldest first. */
  readonly verdicts: readonly Said[];
}

/** An entry of a block list; times in epoch ms. `value` and `reason` are hostile text. */
interface BlockEntry {
  readonly kind: BlockKind;
  readonly value: string;
  readonly reason: string;
  readonly alertId: number | null;
  readonly firstSeen: number;
  readonly lastSeen: number;
  readonly until: number;
  /** Hostile requests in 30 days. */
  readonly requests: number;
}

export interface BlockList {
  readonly entries: readonly BlockEntry[];
  readonly leftOut: Readonly<Partial<Record<LeftOut, number>>>;
}

/** The senders of a zone. */
interface Senders {
  /** Requests of all senders that an attacker's key names, counted back from `countedTo`. */
  readonly counts: readonly SenderCount[];
  readonly countedTo: number;
  /** Fingerprints and networks that are usual in the zone. */
  readonly usual: readonly UsualValue[];
}

/** An attacker by its key, with the incidents in which it attacked, the oldest first. */
interface Candidate {
  readonly kind: BlockKind;
  readonly value: string;
  readonly incidents: BlockIncident[];
}

/** Returns the block list as it was at a time: of what was judged and sent before. */
export function makeBlockList(incidents: readonly BlockIncident[], about: Senders, at: number): BlockList {
  const leftOut: Partial<Record<LeftOut, number>> = {};
  const entries: BlockEntry[] = [];
  const hostile = incidents.filter((incident) => isHostile(incident, at));
  const doubtful = findCandidates(incidents, [], at).length - findCandidates(hostile, [], at).length;
  if (hostile.length < incidents.length) leftOut["not-hostile"] = doubtful;
  const seen = about.counts.filter(({ ago }) => {
    const startsAt = about.countedTo - (ago + 1) * DAY_MS;
    return startsAt < at && startsAt >= at - LOOKS_BACK_DAYS * DAY_MS;
  });
  const candidates = findCandidates(hostile, seen, at);
  const ofKey = new Map(candidates.map(({ kind, value }) => [`${kind} ${value}`, [] as SenderCount[]]));
  for (const sender of seen) for (const name of keysOf(sender)) ofKey.get(name)?.push(sender);
  for (const candidate of candidates) {
    const senders = ofKey.get(`${candidate.kind} ${candidate.value}`) ?? [];
    const found = isUsable(candidate) ? judge(candidate, senders, about, at) : "unusable";
    if (typeof found === "string") leftOut[found] = (leftOut[found] ?? 0) + 1;
    else entries.push(found);
  }
  entries.sort((a, b) => b.requests - a.requests || (a.value < b.value ? -1 : 1));
  if (entries.length > MOST_ENTRIES) leftOut["too-many"] = entries.splice(MOST_ENTRIES).length;
  return { entries, leftOut };
}

/** Returns whether a person, or else the latest verdict until then, says that an incident is hostile. */
function isHostile({ mark, verdicts }: BlockIncident, at: number): boolean {
  if (mark !== null) return isHostileWord(mark);
  const last = verdicts.findLast(({ judgedAt }) => judgedAt <= at);
  return last !== undefined && isHostileWord(last.said) && last.odds >= SURE_ODDS;
}

/** Returns the attackers of incidents, and the addresses whose requests an attacked rule, path or another shared key has found. */
function findCandidates(
  incidents: readonly BlockIncident[],
  senders: readonly SenderCount[],
  at: number,
): Candidate[] {
  const found = new Map<string, Candidate>();
  const named = senders.filter((sender) => sender.found > 0);
  for (const incident of incidents.toSorted((a, b) => a.openedAt - b.openedAt)) {
    const { openedAt, lastActiveAt } = incident;
    const isAlone = incident.attackers.length > 0 && incident.attackers.every(({ kind }) => !SHARED[kind]);
    const during = (isAlone ? [] : named).filter(
      ({ from, to }) => (from ?? at) <= lastActiveAt + AROUND_MS && (to ?? 0) >= openedAt - AROUND_MS,
    );
    for (const { kind: source, key } of [
      ...incident.attackers.filter(({ since }) => since * MINUTE_MS <= at),
      ...during.map(({ ip }) => ({ kind: "rules_per_ip" as const, key: toSourceAddress(ip) })),
    ]) {
      const kind = kindOf(source, key);
      if (kind === null) continue;
      const name = `${kind} ${key}`;
      const before = found.get(name);
      if (before === undefined) found.set(name, { kind, value: key, incidents: [incident] });
      else if (before.incidents.at(-1) !== incident) before.incidents.push(incident);
    }
  }
  return [...found.values()];
}

/** Returns null for a key that no firewall knows: a path, a user agent. */
function kindOf(source: SourceKind, key: string): BlockKind | null {
  if (key === "") return null;
  if (source === "rules_per_ip") return key.includes("/") ? "network" : "address";
  return source === "ips_per_ja4" ? "ja4" : source === "ips_per_asn" ? "asn" : null;
}

/** Returns the keys whose senders a list of these incidents must know: texts of columns, and networks. */
export function listKeys(incidents: readonly BlockIncident[]): { texts: string[]; networks: string[] } {
  const usable = findCandidates(incidents, [], Infinity).filter(isUsable);
  const [networks, others] = [true, false].map((isNetwork) =>
    usable.filter(({ kind }) => (kind === "network") === isNetwork).map(({ value }) => value),
  );
  return { texts: others ?? [], networks: networks ?? [] };
}

const SHARED: Readonly<Partial<Record<SourceKind, SharedKey["kind"]>>> = {
  ips_per_url: "path",
  ips_per_ja4: "ja4",
  ips_per_asn: "asn",
};

/** Returns the keys of hostile incidents that others may have, too. */
export function listShared(incidents: readonly BlockIncident[]): SharedKey[] {
  return incidents
    .filter((one) =>
      [Infinity, ...one.verdicts.map((said) => said.judgedAt)].some((at) => isHostile(one, at)),
    )
    .flatMap(({ ruleId, attackers, openedAt, lastActiveAt }): SharedKey[] => {
      const span = { from: openedAt - AROUND_MS, to: lastActiveAt + MINUTE_MS };
      if (attackers.length === 0) return [{ kind: "rule", key: ruleId, ...span }];
      return attackers.flatMap(({ kind: source, key }) => {
        const kind = SHARED[source];
        return kind === undefined ? [] : [{ kind, key, ...span }];
      });
    });
}

/** Ranges from which no visitor of a public site comes. */
const INSIDE = new Set(
  "unspecified broadcast multicast linkLocal loopback carrierGradeNat private uniqueLocal".split(" "),
);

/** The platform may add the network's name: AS64500 Example Hosting. */
const FORMS = { asn: /^(?:AS)?\d{1,10}\b/i, ja4: /^[\dA-Za-z]+(?:_[\dA-Za-z]+)+$/ } as const;

/** Returns whether a key names somebody who can be blocked. A masked address, a pseudonym and an erased key do not. */
function isUsable({ kind, value }: Pick<Candidate, "kind" | "value">): boolean {
  if (kind === "asn" || kind === "ja4") return FORMS[kind].test(value);
  const address = readAddress(value.split("/", 1)[0] ?? "");
  if (address === null || isNoVisitor(value) || (kind === "address" && isNetworkText(value))) return false;
  return !INSIDE.has(ipaddr.fromByteArray([...address.bytes]).range());
}

/** Returns the names of the entries that would stop a sender. */
function keysOf({ ip, asn, ja4 }: Pick<SenderCount, "ip" | "asn" | "ja4">): string[] {
  const address = toSourceAddress(ip);
  return [`${address.includes("/") ? "network" : "address"} ${address}`, `asn ${asn}`, `ja4 ${ja4}`];
}

function judge(
  { kind, value, incidents }: Candidate,
  senders: readonly SenderCount[],
  { usual }: Senders,
  at: number,
): BlockEntry | LeftOut {
  // Its events were erased, or are no longer kept under the address.
  if (senders.length === 0) return "unusable";
  if (senders.some(({ machine }) => machine > 0)) return "machine";
  if (senders.some(({ visitor }) => visitor > 0)) return "visitors";
  const first = incidents[0] as BlockIncident;
  const last = incidents.at(-1) as BlockIncident;
  // Rules see few of the visitors of a fingerprint or a network, so one that is usual has others.
  const isUsual = (one: UsualValue) => one.value === value && one.since < first.openedAt;
  if ((kind === "asn" || kind === "ja4") && usual.some(isUsual)) return "visitors";
  const sum = (read: (sender: SenderCount) => number) => senders.reduce((all, one) => all + read(one), 0);
  const hostile = sum((one) => one.hostile);
  if (kind !== "address" && hostile < LEAST_HOSTILE * (hostile + sum(({ unknown }) => unknown)))
    return "mixed";
  const from = senders.reduce((least, one) => Math.min(least, one.from ?? least), first.openedAt);
  const seen = senders.reduce((most, one) => Math.max(most, one.to ?? most), last.lastActiveAt);
  const lastSeen = Math.min(at, seen);
  const until = lastSeen + lastsMs(incidents);
  if (until <= at) return "over";
  const said = last.verdicts.findLast(({ judgedAt }) => judgedAt <= at);
  const reason = describeReason(last, said);
  return { kind, value, reason, alertId: last.alertId, firstSeen: from, lastSeen, until, requests: hostile };
}

/** Returns 24 hours, doubled for each incident that began after the one before was over, up to 30 days. */
function lastsMs(incidents: readonly BlockIncident[]): number {
  let [returns, over] = [-1, -Infinity];
  for (const { openedAt, lastActiveAt } of incidents) {
    if (openedAt > over + AROUND_MS) returns += 1;
    over = Math.max(over, lastActiveAt);
  }
  return Math.min(2 ** returns, LOOKS_BACK_DAYS) * DAY_MS;
}

function describeReason({ mark, alertId }: BlockIncident, said: Said | undefined): string {
  const what =
    mark !== null ? `marked ${mark}` : `${said?.said ?? "attack"}, odds ${said?.odds.toFixed(2) ?? ""}`;
  const title = said === undefined ? "" : `: ${said.title}`;
  return `${alertId === null ? "" : `alert ${alertId}, `}${what}${title}`;
}

/**
 * Applies to each of the last days the list as it was when the day began, so that no list is tried on what it was made of.
 * Returns the requests that the lists would have stopped, by whose they are, and the visitors that they would have hit. Texts are hostile.
 */
export function replayBlockLists(incidents: readonly BlockIncident[], senders: Senders, days: number) {
  const stopped = noRequests();
  const hit: { at: number; ip: string; requests: number; entry: string }[] = [];
  const byDay = Map.groupBy(senders.counts, ({ ago }) => ago);
  for (let ago = days - 1; ago >= 0; ago -= 1) {
    const { entries } = makeBlockList(incidents, senders, senders.countedTo - (ago + 1) * DAY_MS);
    const listed = new Set(entries.map(({ kind, value }) => `${kind} ${value}`));
    for (const sender of byDay.get(ago) ?? []) {
      const entry = keysOf(sender).find((name) => listed.has(name));
      if (entry === undefined) continue;
      for (const name of Object.keys(stopped) as RequestClass[]) stopped[name] += sender[name];
      const { first: at, ip, visitor: requests } = sender;
      if (requests > 0) hit.push({ at, ip, requests, entry });
    }
  }
  return { stopped, hit };
}
