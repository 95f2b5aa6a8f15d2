/**
 * The frame of conditions: what can be wrong with Longwatch, each described once. Alerts about Longwatch itself, doctor,
 * status, the overview, the weekly digest, /readyz and the metrics all interpret the same list.
 */

import { parseDetails } from "#alerts/rules/alert-record.ts";
import { type AlertRow, readNewestAlerts } from "#db/alerts/alerts.ts";
import type { Queryable } from "#db/client.ts";
import type { DailyGrowth } from "#db/health/service-status.ts";
import type { DiskSpace } from "#lib/disk.ts";
import { digest } from "#model/fingerprint.ts";
import type { Severity } from "#model/kinds.ts";
import type { Zones } from "#model/zones.ts";

type Read<Rows> = (db: Queryable, zoneIds: readonly number[], nowMs: number) => Promise<Rows>;

/** The database, the moment and the settings from which conditions are read. */
export interface Scope {
  readonly db: Queryable;
  readonly nowMs: number;
  readonly zoneIds: readonly number[];
  readonly pollEveryMs: number;
  /** The configured channels; null if this process does not know those of the service. */
  readonly channels: readonly string[] | null;
  /** The configured destinations of forwarded events. */
  readonly destinations: readonly string[];
  /** The zones of the configuration file, with their accounts. */
  readonly zones: Zones;
  /** Returns the disk of the embedded Postgres and its growth; null where they are not read. */
  readonly readDisk: (() => Promise<(DiskSpace & DailyGrowth) | null>) | null;
  /** Calls `read` at most once: several conditions, and the metrics, need the same rows. */
  readonly once: <Rows>(read: Read<Rows>) => Promise<Rows>;
}

type GivenScope = Pick<Scope, "db" | "nowMs" | "zoneIds"> & Partial<Omit<Scope, "once">>;

export function openScope(given: GivenScope): Scope {
  const known = new Map<unknown, Promise<unknown>>();
  return {
    pollEveryMs: 0,
    channels: null,
    destinations: [],
    zones: {},
    readDisk: null,
    ...given,
    once<Rows>(read: Read<Rows>) {
      const { db, zoneIds, nowMs } = given;
      const reading = (known.get(read) as Promise<Rows> | undefined) ?? read(db, zoneIds, nowMs);
      known.set(read, reading);
      return reading;
    },
  };
}

/** The subject of a condition: a zone, a channel or an account by name, a silence by number; neither for the whole service. */
interface Subject {
  readonly zoneId?: number | null;
  readonly key?: string | number;
}

interface Moment extends Pick<Scope, "nowMs" | "pollEveryMs"> {
  /** The newest alert about the subject. */
  readonly alert: Pick<AlertRow, "firedAt" | "resolvedAt"> | null;
  /** Whether that alert is unresolved. */
  readonly isOpen: boolean;
}

/** The next step of a person. */
export interface Step {
  readonly text: string;
  /** The command in it, without the program's name; null if there is none. */
  readonly command: string | null;
}

export interface Found {
  /** Left out: the severity of the condition. */
  readonly severity?: Severity;
  /** Epoch ms. */
  readonly since: number;
  /** One sentence without a full stop, which every face shows. */
  readonly headline: string;
  /** Left out if the headline says what to do. */
  readonly next?: Step;
  /** Left out: the grace time of the condition. Infinity: people see the condition, but no alert is raised. */
  readonly graceMs?: number;
  /** True if an open alert keeps the headline that it has. */
  readonly keepsHeadline?: boolean;
  /** True if an open alert resolves although the condition is still shown. */
  readonly isOver?: boolean;
}

interface Definition<Of> {
  /** Its name in answers of the API, as the label of the metric and in /readyz. */
  readonly name: string;
  readonly of: "service" | "account" | "zone" | "channel" | "destination" | "silence";
  /** Left out: the name. Stored alerts know it, so it never changes. */
  readonly fingerprint?: string;
  readonly severity: Severity;
  /** The time that the condition lasts before an alert is raised; left out: 0. */
  readonly graceMs?: number;
  /** True if people see the condition before its grace time is over. */
  readonly isShownEarly?: boolean;
  /** True if /readyz says `degraded` while the condition lasts. */
  readonly ready?: boolean;
  /** Returns every subject, also those without a fault. */
  read(scope: Scope): Promise<readonly Of[]>;
  /** Pure. Returns what is wrong; null if nothing is. */
  find(subject: Of, moment: Moment): Found | null;
  /** The headline of the alert that resolves. */
  recovered(subject: Of, moment: Moment): string;
}

export type Condition = Definition<Subject>;

export function defineCondition<Of extends object>(definition: Definition<Of & Subject>): Condition {
  return definition;
}

/** Returns the step to run a command. */
export function toStep(before: string, command: string): Step {
  return { text: `${before} npm run -s longwatch -- ${command}`, command };
}

/** Returns the step that shows more. */
export function see(command: string): Step {
  return toStep("See", command);
}

/** Returns the rows of each examined zone. */
export function byZone<Row extends { readonly zoneId: number }>({ zoneIds }: Scope, rows: readonly Row[]) {
  return zoneIds.map((zoneId) => ({ zoneId, rows: rows.filter((row) => row.zoneId === zoneId) }));
}

/** A condition at one moment, of one subject. */
export interface Examined extends Moment {
  readonly condition: Condition;
  readonly subject: Subject;
  readonly fingerprint: string;
  readonly row: AlertRow | null;
  readonly found: Found | null;
  readonly severity: Severity;
  /** Whether the condition lasts longer than its grace time. */
  readonly isDue: boolean;
}

export async function examine(scope: Scope, conditions: readonly Condition[]): Promise<Examined[]> {
  const read = [];
  for (const condition of conditions)
    for (const subject of await condition.read(scope))
      read.push({ condition, subject, fingerprint: fingerprintOf(condition, subject) });
  const rows = await readNewestAlerts(
    scope.db,
    read.map(({ fingerprint }) => fingerprint),
  );
  const { nowMs, pollEveryMs } = scope;
  return read.map((one) => {
    const { condition, subject } = one;
    const row = rows.get(one.fingerprint) ?? null;
    const moment = { nowMs, pollEveryMs, alert: row, isOpen: row !== null && row.state !== "resolved" };
    const now = condition.find(subject, moment);
    const headline =
      moment.isOpen && now?.keepsHeadline === true ? parseDetails(row?.details).message?.headline : undefined;
    const found = now === null || headline === undefined ? now : { ...now, headline };
    const graceMs = found?.graceMs ?? condition.graceMs ?? 0;
    return {
      ...one,
      ...moment,
      row,
      found,
      severity: found?.severity ?? condition.severity,
      isDue: found !== null && Math.max(0, nowMs - found.since) >= graceMs,
    };
  });
}

/** Returns the fingerprint of the alerts about the subject. */
function fingerprintOf(
  { name, fingerprint = name }: Condition,
  { zoneId, key = zoneId ?? undefined }: Subject,
): string {
  return digest(["self", fingerprint, ...(key === undefined ? [] : [key])]);
}

/** Returns the conditions that people should see: those that are due, that have an alert, or that are shown early. */
export function listShown(examined: readonly Examined[]): (Examined & { readonly found: Found })[] {
  return examined.flatMap((one) => {
    const { found, condition, isDue, isOpen } = one;
    const isShown = isDue || isOpen || condition.isShownEarly === true;
    return found !== null && isShown ? [{ ...one, found }] : [];
  });
}
