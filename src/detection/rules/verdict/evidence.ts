/** What a verdict is judged by: events, nearby rules and usual values. */
import { HOUR_MS } from "#lib/units.ts";
import { type ActionClass, USUAL_DIMENSIONS, type UsualDimension, type VerdictTime } from "#model/kinds.ts";
import type { RequestDetails, RequestFacts } from "#model/request-facts.ts";
import type { FirstUse, UsualValue } from "#model/stored-sources.ts";
import { toSourceAddress } from "../sources/source-event.ts";
import { templateOf, templatesOf } from "./path-template.ts";

/** One event of an alert: of its rule, or of its attackers. Texts are hostile; empty if not known. */
export interface VerdictEvent {
  /** Epoch ms. */
  readonly at: number;
  readonly logId: string;
  readonly ruleId: string;
  readonly ip: string;
  readonly asn: string;
  readonly ja4: string;
  readonly ua: string;
  readonly url: string;
  readonly action: ActionClass;
  /** The platform's protection that it is of, such as `waf`. */
  readonly feature?: string;
  /** The facts of its request; null if none is known. */
  readonly facts: RequestFacts | null;
}

/** A rule that one of the alert's addresses triggered on a path within 24 hours, in this alert or elsewhere. */
export interface NearbyRule {
  readonly ip: string;
  readonly ruleId: string;
  /** Path template, as `templateOf` returns it. */
  readonly template: string;
}

/** Values that were usual in the zone before the alert began. */
export interface UsualValues {
  readonly asns: ReadonlySet<string>;
  readonly ja4s: ReadonlySet<string>;
  /** Path templates. */
  readonly paths: ReadonlySet<string>;
  /** Days of history that it was learnt from. With none, nothing is said about what is usual. */
  readonly days: number;
  /** False if records of the zone never have a Cookie: then their absence says nothing. */
  readonly hasCookies: boolean;
}

/** Everything that a verdict is judged from. Times are epoch ms. */
export interface VerdictEvidence {
  readonly look: VerdictTime;
  readonly judgedAt: number;
  /** Start of the alert. */
  readonly openedAt: number;
  /** Start of the window: the beginning of the rise that opened the alert. */
  readonly since: number;
  /** The rule of the alert; null for an incident. */
  readonly ruleId: string | null;
  /** The newest 5,000 events of the alert in the window, the newest first. */
  readonly events: readonly VerdictEvent[];
  /** Events of other rules, of the same requests: another rule may have stopped them, or show an attack. Left out: none. */
  readonly others?: readonly VerdictEvent[];
  /** For each address, the largest number of the alert's events in an hour of the 24 hours before the window. Others sent none. */
  readonly usualSenders: ReadonlyMap<string, number>;
  /** Events of the rule in an hour of these 24 hours, on average; null for an incident. */
  readonly usualPerHour: number | null;
  /** Rules of the alert's addresses within 24 hours. */
  readonly nearby: readonly NearbyRule[];
  /** Facts by log id, of up to 200 of the events. */
  readonly requests: ReadonlyMap<string, RequestDetails>;
  readonly usual: UsualValues;
  /** Name of the operator whose crawler sends most of the events, if that was verified. */
  readonly crawler: string | null;
  /** Events of the last two hours relative to those of the alert's first two hours; null before the verdict at 6 hours. */
  readonly lasting: number | null;
  /** The note after which the alert began, as `describeNoteBefore` says it; null or left out without one. */
  readonly began?: string | null;
  /** The largest count of the spike so far; left out if it is not known. */
  readonly peak?: number;
}

/** An address sends what it usually does if it sends at most so many times the most of an hour of the day before. */
const USUAL_TIMES = 1.5;
/** So few events more than usual are chance. */
const CHANCE = 2;

/** The events that rose, and those that would have come anyway. */
interface Foreground {
  readonly events: readonly VerdictEvent[];
  /** Number of events of addresses that send as much as before. */
  readonly background: number;
}

/**
 * Divides the events of an alert's window. The background is of addresses whose rate is what it was in the 24 hours before. If
 * everything is, the alert is a wave of the usual senders: then all of it is in the foreground.
 */
export function splitForeground({
  events,
  usualSenders,
  since,
  judgedAt,
}: Pick<VerdictEvidence, "events" | "usualSenders" | "since" | "judgedAt">): Foreground {
  if (usualSenders.size === 0) return { events, background: 0 };
  const hours = Math.max((judgedAt - since) / HOUR_MS, 0.25);
  const bySender = Map.groupBy(events, ({ ip }) => toSourceAddress(ip));
  const isUsual = (address: string, sent: number) => {
    const usual = usualSenders.get(address) ?? 0;
    return usual > 0 && sent <= USUAL_TIMES * usual * Math.max(hours, 1) + CHANCE;
  };
  const usual = new Set(
    [...bySender].flatMap(([address, sent]) => (isUsual(address, sent.length) ? [address] : [])),
  );
  const rose = events.filter(({ ip }) => !usual.has(toSourceAddress(ip)));
  return rose.length === 0
    ? { events, background: 0 }
    : { events: rose, background: events.length - rose.length };
}

/** A value is usual once so many different days (of an ASN) or addresses had it. */
const NEEDED: Readonly<Record<UsualDimension, number>> = { asn: 5, ja4: 20, path: 3 };
/** Values of each dimension that are kept in memory, and values that are returned: those that came first. */
const MOST_KNOWN = 50_000;
const MOST_USUAL = 5_000;

/** By value: who used it first, each with the time of the first use. At most as many users as make a value usual. */
type Values = Map<string, Map<string, number>>;

/** Keeps the first users of values. Uses come in the order of time, so later users of a value change nothing. */
export function createUses() {
  const known: Record<UsualDimension, Values> = { asn: new Map(), ja4: new Map(), path: new Map() };
  return {
    /** Takes a use. The value of a path is its template. */
    note({ dimension, value, user, at }: FirstUse): void {
      const values = known[dimension];
      const users = values.get(value);
      if (value === "" || user === "" || (users === undefined && values.size >= MOST_KNOWN)) return;
      if (users === undefined) values.set(value, new Map([[user, at]]));
      else if (users.size < NEEDED[dimension] && !users.has(user)) users.set(user, at);
    },
    /** Returns the values that enough users had, each since the first use by the user that completed the number. */
    find(): UsualValue[] {
      return USUAL_DIMENSIONS.flatMap((dimension) =>
        Array.from(dimension === "path" ? withNames(known.path) : known[dimension], ([value, users]) => {
          const since = [...users.values()].sort((one, other) => one - other)[NEEDED[dimension] - 1];
          return since === undefined ? [] : [{ dimension, value, since }];
        })
          .flat()
          .sort((one, other) => one.since - other.since)
          .slice(0, MOST_USUAL),
      );
    },
  };
}

/** Returns the usual values of days, whose uses are read once and are in the order of time. */
export async function findUsual(days: AsyncIterable<readonly FirstUse[]>): Promise<UsualValue[]> {
  const known = createUses();
  for await (const uses of days)
    for (const use of uses)
      known.note(use.dimension === "path" ? { ...use, value: templateOf(use.value) } : use);
  return known.find();
}

/** Returns the templates with those in which names became `{slug}`, which have the users of all names. */
function withNames(paths: Values): Values {
  const slugged = templatesOf(paths.keys());
  const named: Values = new Map();
  for (const [template, users] of paths) {
    const value = slugged(template);
    if (value === template) continue;
    const all = named.get(value) ?? new Map(paths.get(value));
    for (const [user, at] of users) all.set(user, Math.min(at, all.get(user) ?? at));
    named.set(value, all);
  }
  return new Map([...paths, ...named]);
}
