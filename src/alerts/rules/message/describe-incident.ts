import { formatWhole, many, showTime } from "#lib/format.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { attackerIdOf } from "#model/fingerprint.ts";
import type { GrownValue, StoredAttacker, StoredSources } from "#model/stored-sources.ts";
import type { AlertSpike } from "../alert-spike.ts";

/** The texts of a request are cut: a line has to fit a phone. */
const MAX_KEY_CHARS = 80;
/** The attackers that a headline names, and those of which a message says more. */
const NAMED = 3;
const DESCRIBED = 5;

/** The texts of a channel about an incident. Hostile text of requests, cut. */
export interface IncidentText {
  /** `Many rules from one address`, or `3 attackers`. */
  readonly title: string;
  /** Sentence about the active attackers. */
  readonly finding: string;
  /** The same once the attack is over or has calmed down. */
  readonly earlier: string;
  /** The attackers one by one, what grew most, and what limits the counts. */
  readonly details: readonly string[];
  /** The thing that the strongest attacker is counted in; undefined: events. */
  readonly unit: AlertMessage["unit"];
  readonly attackers: NonNullable<AlertMessage["attackers"]>;
}

type Described = Pick<AlertSpike, "sources" | "attacking" | "attackers" | "resolvedAttackers" | "closedAtMs">;

/**
 * Describes who attacks, those that are active and the newest of them first. Nobody is active in an incident that has ended,
 * and an attacker that a person has resolved is listed only.
 */
export function describeIncident({
  sources,
  attacking = [],
  attackers = [],
  resolvedAttackers = [],
  closedAtMs,
}: Described): IncidentText {
  const [strongest] = attacking;
  if (sources == null || strongest === undefined) return { ...NOBODY, unit: "addresses" };
  const traitsOf = new Map(attackers.map(({ id, traits }) => [id, traits]));
  const active = new Set(closedAtMs === null ? attacking : []);
  const isResolved = (one: StoredAttacker) => resolvedAttackers.includes(attackerIdOf(one));
  const ordered = sources.findings
    .toReversed()
    .toSorted((a, b) => Number(active.has(b)) - Number(active.has(a)));
  const named = ordered.filter((one) => one.role !== "facet" && !isResolved(one));
  const isNamedActive = named.some((one) => active.has(one));
  // A facet stands for an attacker whose own key is quiet.
  const now = (isNamedActive ? named : ordered).filter((one) => active.has(one));
  const quiet = named.filter((one) => !active.has(one));
  const isOne = named.length <= 1 && now.length <= 1;
  return {
    title: isOne ? titleOf(strongest) : many(named.length + (sources.unnamed ?? 0), "attacker"),
    finding: isOne ? describeFinding(strongest) : nameAttackers(now, quiet, sources.unnamed),
    earlier: isOne ? describeFinding(strongest) : listNames(named, sources.unnamed),
    details: [
      ...(isOne
        ? []
        : ordered
            .slice(0, DESCRIBED)
            .map((one) =>
              describeAttacker(one, isResolved(one) ? "resolved, " : active.has(one) ? "" : "quiet, "),
            )),
      ...(isOne ? ordered.filter((one) => one !== strongest).map(describeFacet) : []),
      ...describeEvents(sources, strongest),
    ],
    unit: isOfEvents(strongest) ? undefined : strongest.kind === "rules_per_ip" ? "rules" : "addresses",
    attackers: ordered.map((one) => ({
      kind: one.kind,
      key: one.key,
      role: one.role ?? "opened",
      startedAt: one.since * MINUTE_MS,
      lastSeenAt: (one.lastFiredAt ?? one.since) * MINUTE_MS,
      isActive: active.has(one),
      ...(isResolved(one) && { isResolved: true }),
      finding: describeFinding(one),
      traits: traitsOf.get(attackerIdOf(one)) ?? {},
    })),
  };
}

const NOBODY = {
  title: "Sources",
  finding: "no series fires",
  earlier: "no series fires",
  details: [],
  attackers: [],
};

/** `203.0.113.9, 198.51.100.7 and 2 more attack now; quiet: 192.0.2.1`. */
function nameAttackers(
  now: readonly StoredAttacker[],
  quiet: readonly StoredAttacker[],
  unnamed = 0,
): string {
  const active =
    now.length === 0
      ? "none attacks now"
      : `${listNames(now, unnamed)} ${now.length + unnamed === 1 ? "attacks" : "attack"} now`;
  return quiet.length === 0 ? active : `${active}; quiet: ${listNames(quiet)}`;
}

function listNames(all: readonly StoredAttacker[], further = 0): string {
  const names = all.slice(0, NAMED).map(({ kind, key }) => `${NOUNS[kind]}${cut(key)}`);
  const rest = all.length - names.length + further;
  return `${names.join(", ")}${rest > 0 ? ` and ${formatWhole(rest)} more` : ""}`;
}

const NOUNS: Readonly<Record<StoredAttacker["kind"], string>> = {
  rules_per_ip: "",
  ips_per_ja4: "JA4 ",
  ips_per_url: "path ",
  ips_per_ua: "user agent ",
  ips_per_asn: "network ",
};

/** `is` says in words and a comma why it is not active; empty if it is. */
function describeAttacker(one: StoredAttacker, is: string): string {
  const state = `${is}since ${showTime(one.since * MINUTE_MS)} UTC`;
  const apart = one.role === "apart" ? "; it shares no events with the others" : "";
  const facet = one.role === "facet" ? "the same events: " : "";
  return `${facet}${describeFinding(one)}; ${state}${apart}`;
}

function describeFacet(one: StoredAttacker): string {
  return `the same events: ${describeFinding(one)}`;
}

function describeEvents(
  { events, rules, firstSeen, grown, isMasked, known = 0, findings }: StoredSources,
  strongest: StoredAttacker,
): string[] {
  const details: string[] = [];
  if (events > 0)
    details.push(
      `${many(events, "event")} of ${findings.length > 1 ? "these attackers" : "this attacker"} in ${strongest.windowMinutes} min${describeRules(rules)}`,
    );
  if (strongest.usualMembers > 0)
    details.push(
      `${formatWhole(strongest.usualMembers)} of them are usual for ${cut(strongest.key)} and are not counted`,
    );
  if (firstSeen != null)
    details.push(`first seen in the last 24 hours: ${showTime(firstSeen * MINUTE_MS)} UTC`);
  if (grown.length > 0)
    details.push(
      `grew most in all of the zone, 15 min against yesterday: ${grown.map(describeGrown).join(", ")}`,
    );
  if (isMasked) details.push("some addresses are masked; each masked address counts as one");
  if (known > 0) details.push(`${many(known, "event")} of known sources in the last hour are not counted`);
  return details;
}

const TITLES: Readonly<Record<StoredAttacker["kind"], string>> = {
  rules_per_ip: "Many rules from one address",
  ips_per_ja4: "Many addresses with one fingerprint",
  ips_per_url: "Many addresses on one URL",
  ips_per_ua: "Many addresses with one user agent",
  ips_per_asn: "Many addresses of one network",
};

function titleOf(one: StoredAttacker): string {
  return isOfEvents(one) ? "Many events from one address" : TITLES[one.kind];
}

/** Returns whether an address is an attacker by its events in one minute, and not by its different rules. */
function isOfEvents({ burst, count }: StoredAttacker): boolean {
  return burst !== undefined && count !== burst.rules;
}

function describeFinding(one: StoredAttacker): string {
  const { kind, key, members, windowMinutes, usual, threshold, burst } = one;
  const within = `in ${windowMinutes} min`;
  const compared = `usually at most ${formatWhole(usual)} at this hour, the threshold is ${formatWhole(Math.ceil(threshold))}`;
  const name = cut(key);
  if (burst !== undefined) {
    const rules = many(burst.rules, "rule", "different rules");
    const unit = isOfEvents(one) ? " events" : "";
    return `${name} sent ${many(burst.events, "event")} of ${rules} in one minute; the fixed threshold is ${formatWhole(Math.ceil(threshold))}${unit}`;
  }
  switch (kind) {
    case "rules_per_ip":
      return `${name} triggered ${many(members, "rule", "different rules")} ${within}; ${compared}`;
    case "ips_per_ja4":
      return `JA4 ${name} came from ${many(members, "address", "addresses")} ${within}; ${compared}`;
    case "ips_per_url":
      return `${many(members, "address", "addresses")} requested ${name} ${within}; ${compared}`;
    case "ips_per_ua":
      return `user agent ${name} came from ${many(members, "address", "addresses")} ${within}; ${compared}`;
    case "ips_per_asn":
      return `${many(members, "address", "addresses")} of ${name} ${within}; ${compared}`;
    default:
      return kind satisfies never;
  }
}

function describeRules(rules: StoredSources["rules"]): string {
  if (rules.length === 0) return "";
  return `, mostly rules ${rules
    .slice(0, 3)
    .map(({ value }) => cut(value))
    .join(", ")}`;
}

const DIMENSIONS: Readonly<Record<GrownValue["dimension"], string>> = {
  asn: "network",
  country: "country",
  path: "path",
  rule: "rule",
  ja4: "JA4",
};

function describeGrown({ dimension, value, now, before }: GrownValue): string {
  return `${DIMENSIONS[dimension]} ${cut(value)} (${formatWhole(before)} to ${formatWhole(now)} events)`;
}

function cut(text: string): string {
  const points = Array.from(text);
  return points.length <= MAX_KEY_CHARS ? text : `${points.slice(0, MAX_KEY_CHARS).join("")}…`;
}
