import { formatWhole, many } from "#lib/format.ts";
import { showTime } from "#lib/show-time.ts";
import { MINUTE_MS } from "#lib/units.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import type { GrownValue, StoredSources } from "#model/stored-sources.ts";

type Finding = StoredSources["findings"][number];

/** The texts of a request are cut: a line has to fit a phone. */
const MAX_KEY_CHARS = 80;

/** The texts of a channel about a zone's sources. Hostile text of requests, cut. */
export interface SourceText {
  /** `Many rules from one address`. */
  readonly title: string;
  /** The strongest series in one sentence. */
  readonly finding: string;
  /** The other series, what grew most, and what limits the counts. */
  readonly details: readonly string[];
  /** The thing that the strongest series counts. */
  readonly unit: NonNullable<AlertMessage["unit"]>;
}

/** Describes what fires, the series furthest above its line first. */
export function describeSources({
  findings,
  grown,
  rules,
  events,
  isMasked,
  known = 0,
  firstSeen,
}: StoredSources): SourceText {
  const [first, ...others] = findings.toSorted((a, b) => b.score - a.score);
  if (first === undefined)
    return { title: "Sources", finding: "no series fires", details: [], unit: "addresses" };
  const details = others.map((finding) => `${titleOf(finding)}: ${describeFinding(finding)}`);
  if (events > 0)
    details.push(
      `${many(events, "event")} of this source in ${first.windowMinutes} min${describeRules(rules)}`,
    );
  if (first.usualMembers > 0)
    details.push(
      `${formatWhole(first.usualMembers)} of them are usual for ${cut(first.key)} and are not counted`,
    );
  if (firstSeen != null)
    details.push(`first seen in the last 24 hours: ${showTime(firstSeen * MINUTE_MS)} UTC`);
  const [most, ...more] = grown;
  if (most !== undefined)
    details.push(
      `grew most in all of the zone, 15 min against yesterday: ${[most, ...more].map(describeGrown).join(", ")}`,
    );
  if (isMasked) details.push("some addresses are masked; each masked address counts as one");
  if (known > 0) details.push(`${many(known, "event")} of known sources in the last hour are not counted`);
  const unit = first.kind === "rules_per_ip" ? "rules" : "addresses";
  return { title: titleOf(first), finding: describeFinding(first), details, unit };
}

const TITLES: Readonly<Record<Finding["kind"], string>> = {
  rules_per_ip: "Many rules from one address",
  ips_per_ja4: "Many addresses with one fingerprint",
  ips_per_url: "Many addresses on one URL",
  ips_per_ua: "Many addresses with one user agent",
  ips_per_asn: "Many addresses of one network",
};

function titleOf({ kind }: Finding): string {
  return TITLES[kind];
}

function describeFinding({ kind, key, members, windowMinutes, usual, threshold }: Finding): string {
  const within = `in ${windowMinutes} min`;
  const compared = `usually at most ${formatWhole(usual)} at this hour, the threshold is ${formatWhole(Math.ceil(threshold))}`;
  const name = cut(key);
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
