/** The words for verdicts, mutes and severities. */

import { formatDuration, formatNumber, many } from "#lib/format.ts";
import { cutText } from "#lib/text.ts";
import { MINUTE_MS } from "#lib/units.ts";
import {
  type Mark,
  type MuteKind,
  type NotifyReason,
  PERSONS_REASONS,
  SEVERITIES,
  type Severity,
  VERDICT_FEATURES,
  type VerdictFeature,
} from "./kinds.ts";
import type { StoredVerdict } from "./verdict.ts";

/** The numbers of a verdict, in words. */
export const FEATURE_WORDS: Readonly<Record<VerdictFeature, string>> = {
  spread: "many addresses",
  usualAsn: "addresses in usual networks",
  usualJa4: "requests with a usual JA4",
  oneJa4: "one JA4 of many addresses",
  dirty: "addresses with other rules on other paths",
  rulesPerIp: "many rules of each address",
  protocol: "addresses with rules of the protocol only",
  knownPath: "requests on known paths",
  onePath: "requests on the largest path",
  session: "requests with a session",
  referer: "requests from a page of the site",
  idiom: "requests with an attack idiom",
  repeat: "repeated requests",
  botUa: "user agents that say bot",
  tool: "requests of attackers' tools",
  program: "user agents of programs",
};

/** The words that are not "a" with the mark's own. */
const MARK_WORDS: Partial<Record<Mark, string>> = { attack: "an attack", noise: "noise" };
const MOST_DAYS = 3;
const formatDay = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });

/** Returns a sentence for each mark, which come the newest first: `You called this a misfire on 3 and 9 November.` */
export function describeMarksBefore(
  marks: readonly { readonly mark: Mark; readonly at: string }[],
): string[] {
  return [...Map.groupBy(marks, ({ mark }) => mark)].map(([mark, of]) => {
    const days = [...new Set(of.map(({ at }) => formatDay.format(Date.parse(at))))];
    const rest = days.length > MOST_DAYS ? ` and ${days.length - MOST_DAYS} days before` : "";
    const shown = days.slice(0, MOST_DAYS).toReversed();
    // A month is named once if the next day is in it as well.
    const named = shown.map((day, index) => {
      const [number = "", month = ""] = day.split(" ");
      return shown[index + 1]?.endsWith(` ${month}`) === true ? number : day;
    });
    const listed = named.join(", ").replace(/, (?=[^,]*$)/, rest === "" ? " and " : ", ");
    return `You called this ${MARK_WORDS[mark] ?? `a ${mark.replace("-", " ")}`} on ${listed}${rest}.`;
  });
}

/** Returns `93 of 100`. */
export function formatOdds(odds: number): string {
  return `${Math.round(odds * 100)} of 100`;
}

/** One row of the table of what the odds are made of. */
interface OddsRow {
  readonly words: string;
  /** From 0 to 1; null if the number is not known. Left out for what is no number. */
  readonly value?: number | null;
  /** Log odds of the likeliest class against the second one. */
  readonly adds: number;
}

/** Returns what the odds are made of: the start, the numbers with the largest for the class first, and their sum. */
export function rowsOfOdds({ start, features }: Pick<StoredVerdict, "start" | "features">): OddsRow[] {
  const names = VERDICT_FEATURES.toSorted((one, other) => features[other].adds - features[one].adds);
  const numbers = names.map((name) => ({ words: FEATURE_WORDS[name], ...features[name] }));
  // An earlier version stored no start, so its rows have no sum.
  if (start === undefined) return numbers;
  const sum = numbers.reduce((total, { adds }) => total + adds, start);
  return [{ words: "without any evidence", adds: start }, ...numbers, { words: "sum", adds: sum }];
}

/** Returns why the odds are not those of the sum of their rows; empty if they are. */
export function describeLimits({
  start,
  features,
  counts,
  for: reasons,
}: Pick<StoredVerdict, "start" | "features" | "counts" | "for">): string[] {
  const sum = rowsOfOdds({ start, features }).at(-1)?.adds ?? 0;
  const [reason] = reasons;
  return [
    ...(counts.records === 0 ? ["No record was read, so half of the sum counts."] : []),
    ...(start !== undefined && sum < 0 && reason !== undefined
      ? [`The sum favours another class. This decides instead: ${reason}`]
      : []),
  ];
}

/** Returns what would have come anyway: `3 events an hour on average of the day before; 12 events of addresses that always send this are left out`. */
export function describeBackground(background: StoredVerdict["background"]): string {
  if (background === undefined) return "";
  const { events, perHour } = background;
  // Without any in the day before, the headline says what is usual.
  const rate =
    perHour === null || perHour <= 0
      ? ""
      : `${formatNumber(perHour)} events an hour on average of the day before`;
  const are = events === 1 ? "is" : "are";
  const left =
    events === 0 ? "" : `${many(events, "event")} of addresses that always send this ${are} left out`;
  return [rate, left].filter((part) => part !== "").join("; ");
}

/** Words for an alert or one of its transitions that was sent to no channel. */
export const MUTE_WORDS: Readonly<Record<MuteKind, string>> = {
  inhibition: "not sent: another alert inhibits it",
  incident: "not sent: part of another alert, which notifies",
  misfire:
    "not sent: it began within an hour of another misfire of its zone or is on its path, and that one notifies",
  "few-addresses": "only listed: few addresses send most of its events",
  "first-day":
    "only listed: its zone is in its first day, and its requests neither attack nor are stopped in numbers",
  digest: "only listed: a silent rule is in the weekly digest",
  group: "not sent: part of an alert for several rules",
};

interface Unsent {
  readonly silencedBy: number | null;
  readonly mutedBy: MuteKind | null;
  /** Channels in their quiet hours. */
  readonly held: readonly string[];
  /** Channels whose group interval was not over. */
  readonly waiting: readonly string[];
}

/** Returns why channels were not notified of a transition, each reason in words; empty if none applies. */
export function describeUnsent({ silencedBy, mutedBy, held, waiting }: Unsent): string[] {
  return [
    ...(silencedBy === null ? [] : [`silenced by #${silencedBy}`]),
    ...(mutedBy === null ? [] : [MUTE_WORDS[mutedBy]]),
    ...(held.length === 0 ? [] : [`after quiet hours to ${held.join(", ")}`]),
    ...(waiting.length === 0 ? [] : [`after group_interval to ${waiting.join(", ")}`]),
  ];
}

/** Returns true when `a` is more severe than `b`. */
export function isGraver(a: Severity, b: Severity): boolean {
  return SEVERITIES.indexOf(a) > SEVERITIES.indexOf(b);
}

/** Returns the most severe one; `info` for an empty list. */
export function gravestOf(all: readonly Severity[]): Severity {
  return all.reduce<Severity>((gravest, next) => (isGraver(next, gravest) ? next : gravest), "info");
}

const REPEATED = ["join", "again", "worse", "repeat"] as const satisfies readonly NotifyReason[];
/** The reasons of a message that a person has to notice. */
export const NOTICED: readonly string[] = ["first", ...REPEATED] satisfies readonly NotifyReason[];
/** The reasons of messages about an alert that a channel knows already. */
export const GOES_ON = [...REPEATED, "turned"] as const satisfies readonly NotifyReason[];
/** The reasons that end an alert. */
export const ENDINGS = ["settled", "resolved"] as const satisfies readonly NotifyReason[];
/** Returns whether a transition of this reason ends an alert. */
export function isEnding(reason: string): reason is (typeof ENDINGS)[number] {
  return ENDINGS.some((ending) => ending === reason);
}
/** Returns whether a transition of this reason is an act of a person that ends nothing. */
export function isPersons(reason: string): boolean {
  return PERSONS_REASONS.some((one) => one === reason);
}

/** What people or their tools did to the sites, such as a deploy. */
export interface Note {
  readonly atMs: number;
  /** Null: all zones. */
  readonly zoneId: number | null;
  /** Hostile text. */
  readonly text: string;
}

/** What began so soon after a note may have its cause there. */
export const AFTER_NOTE_MS = 30 * MINUTE_MS;
const SHOWN_CHARS = 100;

/**
 * Returns `began 4 min after "deploy 1.4.2"` of the latest note on the zone in the half hour before; null if there is none. A rise
 * is found a window after its begin, so what happened in that window comes before it, too.
 */
export function describeNoteBefore(
  notes: readonly Note[],
  { zoneId, openedAtMs }: { readonly zoneId: number; readonly openedAtMs: number },
): string | null {
  const latest = notes
    .filter((one) => one.zoneId === null || one.zoneId === zoneId)
    .filter(({ atMs }) => atMs <= openedAtMs && openedAtMs - atMs <= AFTER_NOTE_MS)
    .toSorted((a, b) => b.atMs - a.atMs)[0];
  if (latest === undefined) return null;
  const since = openedAtMs - latest.atMs;
  const text = `"${cutText(latest.text, SHOWN_CHARS)}"`;
  return since < MINUTE_MS ? `began with ${text}` : `began ${formatDuration(since)} after ${text}`;
}

/** Returns the sentence that a verdict gives as a reason. */
export function toReason(began: string): string {
  return `It ${began}.`;
}
