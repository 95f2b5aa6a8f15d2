import { inTurns } from "#lib/waiting.ts";
import type { EvidenceDimension, SourceKind } from "#model/kinds.ts";
import type { KnownSources } from "#model/known-source.ts";
import type { GrownValue, StoredSources } from "#model/stored-sources.ts";
import { LONGEST_WINDOW } from "../detection-settings.ts";
import { toSourceKey, toSourcePath } from "../sources/source-event.ts";
import type { MinuteEvent } from "../sources/usual-rules.ts";
import { addTo } from "../verdict/requests.ts";
import { createAttackerTest } from "./incident.ts";

const TOP = 5;
const MAX_GROWN = 3;
/** A value that grew by fewer events than this is not named. */
const MIN_GROWTH = 5;
/** Growth is the difference between this many minutes and the same minutes of yesterday. */
export const COMPARED_MINUTES = 15;

interface EvidenceEvent extends MinuteEvent {
  readonly country: string | null;
}

type Top = { value: string; count: number; share: number }[];

export interface IncidentEvidence
  extends Pick<StoredSources, "grown" | "rules" | "events" | "isMasked" | "known"> {
  readonly top: Readonly<Record<Exclude<EvidenceDimension, "action">, Top>>;
  readonly firstMinute: number | null;
  readonly lastMinute: number | null;
  /** Events of the attackers in each of the sixty minutes before the end. */
  readonly sparkline: readonly number[];
}

interface ZoneEvents extends Pick<KnownSources, "isKnown"> {
  /** The events of the hour that ends with `endMinute`. */
  readonly hour: readonly EvidenceEvent[];
  /** The events of its last quarter, a day earlier. */
  readonly yesterday: readonly EvidenceEvent[];
  readonly endMinute: number;
}

/**
 * Collects what the events of attackers have in common, and what grew most in the zone. Events of known sources are
 * only counted.
 */
export async function collectIncidentEvidence(
  incident: { attackers: readonly { kind: SourceKind; key: string }[]; windowMinutes: number },
  { hour, yesterday, endMinute, isKnown }: ZoneEvents,
): Promise<IncidentEvidence> {
  const isOfSource = createAttackerTest(incident.attackers);
  const [inWindow, now, before] = [createCounts(VALUES), createCounts(DIMENSIONS), createCounts(DIMENSIONS)];
  const sparkline = Array.from({ length: LONGEST_WINDOW }, () => 0);
  const found = { events: 0, known: 0, isMasked: false };
  let [firstMinute, lastMinute] = [null as number | null, null as number | null];
  for await (const part of inTurns(hour))
    for (const event of part) {
      const { minute } = event;
      if (isKnown(event)) {
        found.known += 1;
        continue;
      }
      if (minute >= endMinute - COMPARED_MINUTES) now.take(event);
      if (!isOfSource(event)) continue;
      const at = minute - (endMinute - LONGEST_WINDOW);
      if (at >= 0 && at < LONGEST_WINDOW) sparkline[at] = (sparkline[at] ?? 0) + 1;
      if (minute < endMinute - incident.windowMinutes) continue;
      found.events += 1;
      found.isMasked ||= isMaskedAddress(event.ip);
      firstMinute ??= minute;
      lastMinute = minute;
      inWindow.take(event);
    }
  for await (const part of inTurns(yesterday))
    for (const event of part) if (!isKnown(event)) before.take(event);
  const topOf = (name: keyof typeof VALUES): Top =>
    largest(inWindow.counts[name]).map((one) => ({ ...one, share: one.count / found.events }));
  return {
    ...found,
    top: {
      ip: topOf("ip"),
      asn: topOf("asn"),
      country: topOf("country"),
      path: topOf("path"),
      ua: topOf("ua"),
      ja4: topOf("ja4"),
    },
    rules: largest(inWindow.counts.rule),
    firstMinute,
    lastMinute,
    sparkline,
    grown: findGrown(now.counts, before.counts),
  };
}

type ValueOf = (event: EvidenceEvent) => string;

const VALUES = {
  ip: ({ ip }) => ip ?? "",
  asn: ({ asn }) => asn ?? "",
  country: ({ country }) => country ?? "",
  path: ({ url }) => (url === null ? "" : toSourcePath(url)),
  ua: ({ ua }) => ua ?? "",
  ja4: ({ ja4 }) => ja4 ?? "",
  rule: ({ ruleId }) => ruleId ?? "",
} as const satisfies Record<string, ValueOf>;

const DIMENSIONS: Readonly<Record<GrownValue["dimension"], ValueOf>> = {
  asn: ({ asn }) => toSourceKey(asn),
  country: ({ country }) => toSourceKey(country),
  path: VALUES.path,
  rule: ({ ruleId }) => toSourceKey(ruleId),
  ja4: ({ ja4 }) => toSourceKey(ja4),
};

type Counts<Name extends string> = Readonly<Record<Name, Map<string, number>>>;
type Grown = Counts<GrownValue["dimension"]>;

/** Counts the events of each value, of several fields at once. */
function createCounts<Name extends string>(valuesOf: Readonly<Record<Name, ValueOf>>) {
  const names = Object.keys(valuesOf) as Name[];
  const counts = Object.fromEntries(names.map((name) => [name, new Map()])) as Counts<Name>;
  return {
    counts,
    take(event: EvidenceEvent): void {
      for (const name of names) {
        const value = valuesOf[name](event);
        if (value !== "") addTo(counts[name], value);
      }
    },
  };
}

/** Returns the value of each dimension whose events grew most, the largest growth first. */
function findGrown(now: Grown, before: Grown): GrownValue[] {
  return (Object.keys(DIMENSIONS) as GrownValue["dimension"][])
    .flatMap((dimension) => {
      let most: GrownValue | null = null;
      for (const [value, count] of now[dimension]) {
        const grown = { dimension, value, now: count, before: before[dimension].get(value) ?? 0 };
        if (most === null || growthOf(grown) > growthOf(most)) most = grown;
      }
      return most === null || growthOf(most) < MIN_GROWTH ? [] : [most];
    })
    .sort((a, b) => growthOf(b) - growthOf(a))
    .slice(0, MAX_GROWN);
}

function growthOf({ now, before }: GrownValue): number {
  return now - before;
}

function largest(counts: ReadonlyMap<string, number>): { value: string; count: number }[] {
  const sorted = [...counts].sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1));
  return sorted.slice(0, TOP).map(([value, count]) => ({ value, count }));
}

/** Returns whether an address lacks a part, so that several senders look like one. */
function isMaskedAddress(ip: string | null): boolean {
  return ip !== null && /[*x]/i.test(ip) && !ip.startsWith("anon-");
}
