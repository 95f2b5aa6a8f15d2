import { GROUP_KIND } from "../../db/alerting/alert-groups.ts";
import { listAlerts, readAlert } from "../../db/alerting/alert-reports.ts";
import { expireSilence, insertSilence } from "../../db/alerting/silences.ts";
import type { Database, Queryable } from "../../db/client.ts";
import { writeAuditEntry } from "../../db/keys/audit-entries.ts";
import { inTransaction } from "../../db/postgres/transaction.ts";
import { findSilence, type Matchers } from "../alerting/silence.ts";
import { maskAddress } from "../archive/mask/mask.ts";
import { maskText } from "../archive/mask/mask-text.ts";
import { MINUTE_MS, SECOND_MS } from "../lib/units.ts";
import { replaceInJson } from "../privacy/replace-addresses.ts";
import { summariseAlert } from "./summarise-alert.ts";

/** Alerts that are looked at to say what a silence holds back now. */
const MAX_ALERTS = 10_000;

export interface WantedSilence {
  readonly matchers: Matchers;
  readonly durationMs: number;
  /** Hostile text, like who wants it. */
  readonly reason: string;
  readonly by: string;
  /** What the audit trail calls them; by default their name. */
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
  /** The unresolved alerts that it holds back now, the newest first. */
  readonly alertIds: readonly number[];
}

export interface AddedSilence extends PlannedSilence {
  readonly id: number;
}

/** Keeps alerts from the channels for a while, with its audit entry. */
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
      // The entry outlives every erasure: the silence itself has the address until then.
      details: {
        matchers: maskMatchers(matchers),
        reason: maskText(reason),
        expiresAt: span.expiresAt.toISOString(),
      },
    });
    return { id, ...planned };
  });
}

/** A rule that a silence names is text of whoever made it. */
function maskMatchers(matchers: Matchers): unknown {
  return replaceInJson(matchers, maskAddress, { dropTraits: false });
}

/** What the silence would be and hold back; nothing is written. */
export async function planSilence(db: Queryable, wanted: WantedSilence): Promise<PlannedSilence> {
  const { matchers, durationMs, reason, by, nowMs } = wanted;
  // Before now, so that it holds for a replica whose clock is a little behind.
  const startsAt = Math.floor(nowMs / MINUTE_MS) * MINUTE_MS;
  // Whole seconds, so that what a list prints is what holds.
  const expiresAt = Math.round((nowMs + durationMs) / SECOND_MS) * SECOND_MS;
  const silence = { id: 0, startsAtMs: startsAt, expiresAtMs: expiresAt, matchers };
  const unresolved = await listAlerts(db, { states: ["firing", "acknowledged"], limit: MAX_ALERTS });
  const alertIds = unresolved
    .map(summariseAlert)
    .filter((alert) => findSilence([silence], alert, nowMs) !== null)
    .map(({ id }) => id);
  return { startsAt, expiresAt, matchers, reason, createdBy: by, alertIds };
}

/** Why an alert cannot be named to silence its like; null where it can. */
export type UnsilenceableAlert = "unknown" | "about-longwatch" | "many-zones" | "family";

/** The zone and the rule of one alert, as matchers; the zone of one that speaks for many rules. */
export async function matchAlert(db: Queryable, alertId: number): Promise<Matchers | UnsilenceableAlert> {
  const row = await readAlert(db, alertId);
  if (row === null) return "unknown";
  const { kind, zoneId, ruleId } = row;
  if (kind === GROUP_KIND) return zoneId === null ? "many-zones" : { zone: [zoneId] };
  if (zoneId === null || ruleId === null) return "about-longwatch";
  // As a matcher it would mean every rule that begins like it.
  return ruleId.endsWith("*") ? "family" : { zone: [zoneId], rule: [ruleId] };
}

/** Ends a silence now, with its audit entry. Of two at once one ends it. */
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
