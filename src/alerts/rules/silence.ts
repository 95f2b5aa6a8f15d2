/** Silences and the alerts that they match. */
import { z } from "zod";
import type { AlertSubject } from "#model/fingerprint.ts";
import { SEVERITIES, type Severity } from "#model/kinds.ts";
import { matchesRule, matchesSources, type SourceTraits } from "#model/subject.ts";
import { gravestSeverity } from "./alert-history.ts";
import { parseDetails, type StoredAlert, toAlertRecord } from "./alert-record.ts";

/**
 * Alerts that a silence holds back: every member named must match, one of its values is enough. A rule may end in `*`
 * for a family (`942*`). At least one member: an empty silence would hold back everything there is.
 */
export const Matchers = z
  .strictObject({
    zone: z.array(z.int()).min(1).optional(),
    rule: z.array(z.string().min(1)).min(1).optional(),
    severity: z.array(z.enum(SEVERITIES)).min(1).optional(),
    kind: z.array(z.string().min(1)).min(1).optional(),
    ip: z.array(z.string().min(1)).min(1).optional(),
    asn: z.array(z.string().min(1)).min(1).optional(),
    country: z.array(z.string().min(1)).min(1).optional(),
    ja4: z.array(z.string().min(1)).min(1).optional(),
    ua: z.array(z.string().min(1)).min(1).optional(),
    url: z.array(z.string().min(1)).min(1).optional(),
  })
  .refine((matchers) => Object.values(matchers).some((values) => values !== undefined), {
    message: "must name at least one of zone, rule, severity, kind, ip, asn, country, ja4, ua, url",
  });
export type Matchers = z.infer<typeof Matchers>;

export interface Silence {
  readonly id: number;
  readonly startsAtMs: number;
  readonly expiresAtMs: number;
  readonly matchers: Matchers;
}

/** A silence with who made it and why: hostile text. */
export interface SignedSilence extends Silence {
  readonly createdAtMs: number;
  readonly createdBy: string;
  readonly reason: string;
}

/** Returns the stored silences whose matchers can be read; one that cannot be read mutes nothing. */
export function toSilences(
  rows: readonly {
    readonly id: number;
    readonly startsAt: Date;
    readonly expiresAt: Date;
    readonly createdAt: Date;
    readonly createdBy: string;
    readonly reason: string;
    readonly matchers: unknown;
  }[],
): SignedSilence[] {
  return rows.flatMap(({ id, startsAt, expiresAt, createdAt, createdBy, reason, ...row }) => {
    const matchers = Matchers.safeParse(row.matchers).data;
    if (matchers === undefined) return [];
    const times = {
      startsAtMs: startsAt.getTime(),
      expiresAtMs: expiresAt.getTime(),
      createdAtMs: createdAt.getTime(),
    };
    return [{ id, ...times, createdBy, reason, matchers }];
  });
}

/** The properties of an alert that a silence is compared with. */
interface SilencedSubject extends AlertSubject {
  /** The rules of an alert about several. */
  readonly rules?: readonly string[] | undefined;
  readonly severity: Severity;
  readonly traits?: SourceTraits;
}

/** The silence in force for this alert, the one that lasts longest; null when there is none. */
export function findSilence<One extends Silence>(
  silences: readonly One[],
  subject: SilencedSubject,
  nowMs: number,
): One | null {
  return silences
    .filter(({ startsAtMs, expiresAtMs }) => startsAtMs <= nowMs && nowMs < expiresAtMs)
    .filter(({ matchers }) => matches(matchers, subject))
    .reduce<One | null>(
      (longest, next) => (longest === null || next.expiresAtMs > longest.expiresAtMs ? next : longest),
      null,
    );
}

/** An alert. An incident has its attackers, those that are quiet left out. */
export interface SilencedAlert extends SilencedSubject {
  readonly attackers?: readonly { readonly traits: SourceTraits }[] | undefined;
}

/** The same for an incident, which is muted if each of its attackers is: a silence of one address must not hide another. */
export function findAlertSilence<One extends Silence>(
  silences: readonly One[],
  { attackers = [], ...alert }: SilencedAlert,
  nowMs: number,
): One | null {
  let found: One | null = null;
  for (const { traits } of attackers.length > 0 ? attackers : [alert]) {
    found = findSilence(silences, { ...alert, ...(traits === undefined ? {} : { traits }) }, nowMs);
    if (found === null) return null;
  }
  return found;
}

/** Returns whether a silence with these matchers mutes the alert while it is in force. */
export function wouldMute(matchers: Matchers, alert: SilencedAlert): boolean {
  return findAlertSilence([{ id: 0, startsAtMs: 0, expiresAtMs: 1, matchers }], alert, 0) !== null;
}

function matches(matchers: Matchers, subject: SilencedSubject): boolean {
  const { zone, rule, severity, kind } = matchers;
  // A silence of one rule does not hide the others.
  const ids = subject.rules ?? [subject.ruleId];
  return (
    (zone === undefined || (subject.zoneId !== null && zone.includes(subject.zoneId))) &&
    (rule === undefined || ids.every((id) => rule.some((pattern) => matchesRule(pattern, id)))) &&
    (severity === undefined || severity.includes(subject.severity)) &&
    // Only a silence that names the kind mutes alerts about Longwatch itself: during a load test of a zone, an alert about
    // a gap must still notify.
    (kind === undefined ? subject.kind !== "self" : kind.includes(subject.kind)) &&
    matchesSources(matchers, subject.traits)
  );
}

/** Whether a typed pattern can match a rule: a `*` means any rest of an id at the end, and nothing elsewhere. */
export function canMatchRules(pattern: string): boolean {
  return !pattern.slice(0, -1).includes("*");
}

/** Returns a stored alert as silences are compared with it: as it is in its latest message. */
export function toSilencedAlert(
  row: AlertSubject & StoredAlert & { readonly details: unknown },
): Required<Omit<SilencedAlert, "incident">> {
  const { kind, zoneId, ruleId } = row;
  const { message } = parseDetails(row.details);
  return {
    kind,
    zoneId,
    ruleId,
    rules: message?.rules,
    severity: message?.severity ?? gravestSeverity(toAlertRecord(row)),
    traits: message?.traits ?? {},
    attackers: message?.attackers?.filter(({ isActive }) => isActive) ?? [],
  };
}
