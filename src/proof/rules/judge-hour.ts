import { formatDuration, many } from "#lib/format.ts";
import { HOUR_MS } from "#lib/units.ts";
import { BEFORE_WATCH, type CoveredHour, type HourContents, type Look } from "#model/covered-hour.ts";
import { firstListedDay, horizonAt, KEPT_MS, startOfDay, toDay } from "#model/horizon.ts";
import {
  AGREE_LONG_MS,
  findLacking,
  isWorthJudging,
  LACKING,
  type Lacking,
  type Proof,
  settledAt,
} from "./hour-proof.ts";
import { joinIdDigests, NO_IDS } from "./id-digest.ts";
import type { MetricAbove } from "./judge-counts.ts";

export const FIRST_WATCHED = "The platform had begun to forget this hour when the zone was first watched.";
const SOON_FORGOTTEN =
  "The platform began to forget this hour within an hour after the zone was first watched.";
const EMPTY_ONCE =
  "No route showed an event of this hour, but the platform forgot it before a second look could confirm that.";

const REMOVED = "The zone was removed from the configuration before the events were proven complete.";

/** Reasons of a gap that could not be prevented. Such a gap raises no alert. */
export const UNPREVENTABLE: readonly string[] = [
  FIRST_WATCHED,
  SOON_FORGOTTEN,
  EMPTY_ONCE,
  REMOVED,
  ...BEFORE_WATCH,
];

export interface JudgedHour extends CoveredHour {
  /** The zone's first known hour, epoch ms of its start. */
  readonly firstHour: number;
  /** The stored contents of the hour; null if they were not read because the hour cannot be sealed. */
  readonly stored: HourContents | null;
}

/** Entries in quarantine that could not be read, by what is known of their time. */
export interface UnreadableEntries {
  /** Start of the hour in epoch ms; null if the entries have no readable time. */
  readonly hour: number | null;
  /** UTC day (`yyyy-MM-dd`) of the list; null for entries of a search. */
  readonly day: string | null;
  readonly entries: number;
}

export interface JudgedZone {
  readonly settleMs: number;
  /** How long the platform keeps the zone's events, and what it is known to have kept them for at least; ms. */
  readonly keptMs: number;
  /** Reason why the zone's answers are held back; null while they are not. Only the reason of a gap names it. */
  readonly suspicion: string | null;
  /** UTC days, epoch ms of their start, whose metrics agree with the stored events. */
  readonly confirmedDays: ReadonlySet<number>;
  /** UTC days (`yyyy-MM-dd`) for which the platform's metrics count more than is stored, with those counts. */
  readonly metricsAbove: ReadonlyMap<string, readonly MetricAbove[]>;
  readonly unreadable?: readonly UnreadableEntries[];
}

type ProofPolicy = Pick<JudgedZone, "settleMs" | "confirmedDays">;

/** Evidence as it is stored, for people: times as ISO text. */
type Evidence = Readonly<Record<string, unknown>>;

export type Verdict =
  | { readonly state: "open"; readonly lacking: Lacking | null }
  | { readonly state: "sealed"; readonly evidence: Evidence }
  | { readonly state: "gap"; readonly reason: string; readonly evidence: Evidence };

/**
 * Returns the decision about an undecided hour. Sealed: it has settled, and `findLacking` returns null. A gap: the
 * platform has forgotten the whole hour before that.
 */
export function judgeHour(now: number, hour: JudgedHour, zone: JudgedZone): Verdict {
  const { startsAt, stored } = hour;
  const proof = proofOf(now, hour, zone);
  const hasSettled = proof.from <= now;
  const lacking = hasSettled ? findLacking(hour, stored ?? assumeContents(hour), proof) : "search";
  if (hasSettled && stored !== null && lacking === null)
    return { state: "sealed", evidence: prove(hour, stored, proof, zone) };
  if (startsAt + HOUR_MS > horizonAt(now, zone.keptMs))
    return { state: "open", lacking: hasSettled ? lacking : null };
  return { state: "gap", reason: explainGap(hour, lacking, zone), evidence: describeGap(hour) };
}

/** Returns the gap that an undecided hour becomes if its zone is no longer configured and the platform has forgotten it. */
export function giveUpHour(hour: CoveredHour) {
  return { state: "gap", reason: REMOVED, evidence: describeGap(hour) } as const;
}

/**
 * Returns why an undecided hour that has settled is not sealed yet, for people; null for every other hour. Uses only
 * recorded values, so the result is the likely reason.
 */
export function explainOpen(
  now: number,
  hour: CoveredHour,
  { settleMs, unreadable }: Pick<JudgedZone, "settleMs" | "unreadable">,
): string | null {
  const proof = proofOf(now, hour, { settleMs, confirmedDays: new Set() });
  if (hour.state !== "open" || proof.from > now) return null;
  const lacking = findLacking(hour, assumeContents(hour), proof);
  if (lacking === null) return null;
  return LACKING[lacking] + (lacking === "missing" ? describeUnreadable(hour, unreadable) : "");
}

/** Returns the end of a sentence about events that are missing. */
function describeUnreadable({ startsAt }: CoveredHour, unreadable: JudgedZone["unreadable"] = []): string {
  const day = toDay(startsAt);
  const entries = unreadable
    .filter((one) => one.hour === startsAt || (one.hour === null && (one.day ?? day) === day))
    .reduce((sum, one) => sum + one.entries, 0);
  const what = many(entries, "entry that may be of this hour is", "entries that may be of this hour are");
  return entries === 0 ? "" : `; ${what} in quarantine`;
}

/**
 * Returns the verdict about an undecided hour that the platform has begun to forget, before seal-windows has judged
 * it. Uses only recorded values, so the verdict is the likely one.
 */
export function foreseeVerdict(
  now: number,
  hour: CoveredHour & Pick<JudgedHour, "firstHour">,
  zone: Pick<JudgedZone, "settleMs" | "suspicion" | "keptMs" | "unreadable">,
): Verdict {
  const known = { ...zone, confirmedDays: new Set<number>(), metricsAbove: new Map() };
  return judgeHour(now, { ...hour, stored: assumeContents(hour) }, known);
}

/** Returns the contents of the hour if the latest search has shown what is stored. */
function assumeContents({ storedCount, unresolvedSince, looks }: CoveredHour): HourContents {
  const ids = joinIdDigests(looks.search?.ids ?? NO_IDS, looks.search?.lacks?.digest ?? NO_IDS);
  return {
    count: storedCount,
    ids,
    unresolved: unresolvedSince === null ? 0 : 1,
    doubled: 0,
    contestedAt: null,
    revised: 0,
  };
}

/** Returns whether the hour's looks are complete enough to read the stored events and judge it. */
export function isCandidate(now: number, hour: CoveredHour, zone: JudgedZone): boolean {
  const proof = proofOf(now, hour, zone);
  return proof.from <= now && isWorthJudging(hour, proof);
}

function proofOf(now: number, hour: CoveredHour, { settleMs, confirmedDays }: ProofPolicy): Proof {
  const day = startOfDay(hour.startsAt);
  return {
    from: settledAt(hour, settleMs),
    isListed: day >= firstListedDay(now),
    isDayConfirmed: confirmedDays.has(day),
  };
}

function prove(hour: JudgedHour, stored: HourContents, proof: Proof, zone: JudgedZone): Evidence {
  const { looks, lastNewAt, surplusCells, startsAt } = hour;
  const metricsAbove = zone.metricsAbove
    .get(toDay(startsAt))
    ?.map(({ fetchedAt, ...counts }) => ({ ...counts, fetchedAt: toIso(fetchedAt) }));
  const list = proof.isListed ? looks.list : undefined;
  const lacking = looks.search?.lacks;
  const isWithdrawn = lacking !== undefined && (list === undefined || list.count < stored.count);
  return {
    stored: { count: stored.count, ids: stored.ids },
    ...(isWithdrawn ? { withdrawn: { count: lacking.count, ids: lacking.ids } } : {}),
    list: list === undefined ? null : showLook(list),
    search: looks.search === undefined ? null : showLook(looks.search),
    counts: looks.counts === undefined ? null : { ...showLook(looks.counts), surplusCells },
    ...(list !== undefined && list.count < stored.count ? { listLacks: stored.count - list.count } : {}),
    ...(stored.unresolved > 0 ? { unresolved: stored.unresolved } : {}),
    ...(stored.revised > 0 ? { revised: stored.revised } : {}),
    ...(stored.contestedAt === null ? {} : { contestedSince: toIso(stored.contestedAt) }),
    ...(metricsAbove === undefined ? {} : { metricsAbove }),
    lastNewAt: toIso(lastNewAt),
  };
}

/** Returns a look in the form for people. */
function showLook({ at, since, ...look }: Look): Evidence {
  return { at: toIso(at), since: toIso(since), ...look };
}

function describeGap(hour: CoveredHour): Evidence {
  const { startsAt, searchedThrough, lastNewAt, storedCount, missingCells, surplusCells, looks } = hour;
  return {
    from: toIso(startsAt),
    to: toIso(startsAt + HOUR_MS),
    stored: { count: storedCount },
    list: looks.list === undefined ? null : showLook(looks.list),
    search: {
      through: toIso(searchedThrough),
      ...(looks.search === undefined ? {} : showLook(looks.search)),
    },
    counts: looks.counts === undefined ? null : { ...showLook(looks.counts), missingCells, surplusCells },
    lastNewAt: toIso(lastNewAt),
  };
}

/** Returns the reason of a gap: the first missing proof. */
function explainGap(hour: JudgedHour, lacking: Lacking | null, zone: JudgedZone): string {
  const { suspicion, keptMs, unreadable } = zone;
  const { startsAt, searchedThrough, closingSearchAt, reconciledAt, missingCells } = hour;
  if (startsAt === hour.firstHour) return FIRST_WATCHED;
  if (startsAt === hour.firstHour + HOUR_MS) return SOON_FORGOTTEN;
  if (searchedThrough === null) return "No search was made before the platform forgot the events.";
  if (searchedThrough < startsAt + HOUR_MS)
    return `The search had reached only ${toIso(searchedThrough)} when the platform forgot the events.`;
  if (keptMs < KEPT_MS) return `The platform now keeps events for only ${formatDuration(keptMs)}.`;
  if (suspicion !== null) return `The platform's answers were held back: ${suspicion}`;
  if (closingSearchAt === null)
    return "No full search was made after the settle time, while the platform still had all events.";
  if (reconciledAt === null) return "The platform's counts were never read.";
  if (missingCells > 0)
    return `The platform counted more events than Longwatch could copy, for ${many(missingCells, "rule")}${describeUnreadable(hour, unreadable)}.`;
  if (lacking === "empty" && isTooLateForTwo(hour)) return EMPTY_ONCE;
  return `The platform forgot the events before they were proven complete: ${LACKING[lacking ?? "search"]}.`;
}

/**
 * Returns whether the first look at an hour without events came so late that a second one, an hour later, was
 * impossible.
 */
function isTooLateForTwo({ startsAt, looks: { search } }: JudgedHour): boolean {
  return search !== undefined && horizonAt(search.since + AGREE_LONG_MS) > startsAt;
}

function toIso(at: number | null): string | null {
  return at === null ? null : new Date(at).toISOString();
}
