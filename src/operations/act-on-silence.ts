import { listAlerts, readAlert } from "../../db/alerting/alert-reports.ts";
import { expireSilence, insertSilence, pageSilences } from "../../db/alerting/silences.ts";
import type { Database, Queryable } from "../../db/client.ts";
import { writeAuditEntry } from "../../db/keys/audit-entries.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { findSilence, type Matchers } from "../alerting/silence.ts";
import { maskAddress } from "../archive/mask/mask.ts";
import { maskText } from "../archive/mask/mask-text.ts";
import { isObject } from "../lib/is-object.ts";
import { MINUTE_MS, SECOND_MS } from "../lib/units.ts";
import { GROUP_KIND } from "../model/kinds.ts";
import { replaceInJson } from "../privacy/replace-addresses.ts";
import { summariseAlert } from "./summarise-alert.ts";

/** The most alerts that are read to find those that a silence mutes now. */
const MAX_ALERTS = 10_000;
/** The most silences that are compared with a new one. */
const MAX_SILENCES = 1_000;

export interface WantedSilence {
  readonly matchers: Matchers;
  readonly durationMs: number;
  /** Untrusted text, as is `by`. */
  readonly reason: string;
  readonly by: string;
  /** The actor in the audit trail. By default the name of the person. */
  readonly actor?: string;
  readonly nowMs: number;
}

/** Times in epoch ms. */
export interface PlannedSilence {
  readonly startsAt: number;
  readonly expiresAt: number;
  readonly matchers: Matchers;
  readonly reason: string;
  readonly createdBy: string;
  /** The unresolved alerts that the silence mutes now, the newest first. */
  readonly alertIds: readonly number[];
  /** Silences that are not over and have the same matchers. */
  readonly equalIds: readonly number[];
}

export interface AddedSilence extends PlannedSilence {
  readonly id: number;
}

/** Adds a silence with its audit entry. */
export function addSilence(database: Database, wanted: WantedSilence): Promise<AddedSilence> {
  return inTransaction(database, async ({ tx }) => {
    const planned = await planSilence(tx, wanted);
    const { startsAt, expiresAt, createdBy, reason, matchers } = planned;
    const span = { startsAt: new Date(startsAt), expiresAt: new Date(expiresAt) };
    const id = await insertSilence(tx, { ...span, createdBy, reason, matchers });
    await writeAuditEntry(tx, {
      actor: maskText(wanted.actor ?? createdBy),
      action: "silence.added",
      subject: `silence ${id}`,
      // Masked, because an erasure does not change audit entries. It does change the silence itself.
      details: {
        matchers: maskMatchers(matchers),
        reason: maskText(reason),
        expiresAt: span.expiresAt.toISOString(),
      },
    });
    return { id, ...planned };
  });
}

/** Masks addresses in the matchers: a rule in a matcher is text that a person typed. */
function maskMatchers(matchers: Matchers): unknown {
  return replaceInJson(matchers, maskAddress, { dropTraits: false });
}

/** Returns the silence that would be added and the alerts that it would mute. Writes nothing. */
export async function planSilence(db: Queryable, wanted: WantedSilence): Promise<PlannedSilence> {
  const { matchers, durationMs, reason, by, nowMs } = wanted;
  // Starts before now, so that it is active for a replica whose clock is slightly late.
  const startsAt = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
  // Whole seconds, because lists print whole seconds.
  const expiresAt = Math.round((nowMs + durationMs) / SECOND_MS) * SECOND_MS;
  const silence = { id: 0, startsAtMs: startsAt, expiresAtMs: expiresAt, matchers };
  const unresolved = await listAlerts(db, { states: ["firing", "acknowledged"], limit: MAX_ALERTS });
  const alertIds = unresolved
    .map(summariseAlert)
    .filter((alert) => findSilence([silence], alert, nowMs) !== null)
    .map(({ id }) => id);
  const equalIds = await findEqual(db, matchers, nowMs);
  return { startsAt, expiresAt, matchers, reason, createdBy: by, alertIds, equalIds };
}

async function findEqual(db: Queryable, matchers: Matchers, nowMs: number): Promise<number[]> {
  const statuses = ["in force", "to come"] as const;
  const page = { zoneIds: null, statuses, nowMs, beforeId: undefined, limit: MAX_SILENCES };
  const wanted = toComparable(matchers);
  const rows = await pageSilences(db, page);
  return rows.filter((row) => toComparable(row.matchers) === wanted).map(({ id }) => id);
}

/** Returns the same text for matchers with the same values, in whatever order these were given. */
function toComparable(matchers: unknown): string {
  if (!isObject(matchers)) return "";
  const members = Object.entries(matchers).map(([name, values]) => [
    name,
    Array.isArray(values) ? [...new Set(values.map(String))].sort() : values,
  ]);
  return JSON.stringify(members.sort(([one], [other]) => (String(one) < String(other) ? -1 : 1)));
}

/** The reasons why no silence can be made from an alert. */
export type UnsilenceableAlert = "unknown" | "about-longwatch" | "many-zones" | "family";

/** Returns matchers for the zone and the rule of an alert, or for the zone of a group alert. */
export async function matchAlert(db: Queryable, alertId: number): Promise<Matchers | UnsilenceableAlert> {
  const row = await readAlert(db, alertId);
  if (row === null) return "unknown";
  const { kind, zoneId, ruleId } = row;
  if (kind === GROUP_KIND) return zoneId === null ? "many-zones" : { zone: [zoneId] };
  if (zoneId === null || ruleId === null) return "about-longwatch";
  // As a matcher, the id would match every rule that begins with it.
  return ruleId.endsWith("*") ? "family" : { zone: [zoneId], rule: [ruleId] };
}

/** Ends a silence now and writes an audit entry. If two callers end it at once, one succeeds. */
export function endSilence(
  database: Database,
  { id, by, actor = by, nowMs }: { id: number; by: string; actor?: string; nowMs: number },
): Promise<"expired" | "over" | "unknown"> {
  return inTransaction(database, async ({ tx }) => {
    const ended = await expireSilence(tx, id, nowMs);
    const entry = {
      actor: maskText(actor),
      action: "silence.expired",
      subject: `silence ${id}`,
      details: {},
    };
    if (ended === "expired") await writeAuditEntry(tx, entry);
    return ended;
  });
}
