import { listAlerts, readAlert } from "#db/alerting/alert-reports.ts";
import { expireSilence, extendSilence, insertSilence, pageSilences } from "#db/alerting/silences.ts";
import type { Database, Queryable } from "#db/client.ts";
import { writeAuditEntry } from "#db/keys/audit-entries.ts";
import { inTransaction } from "#db/postgres/transaction.ts";
import { isObject } from "#lib/is-object.ts";
import { MINUTE_MS, SECOND_MS } from "#lib/units.ts";
import {
  GROUP_KIND,
  LASTING_SILENCE_STATES,
  type SilenceEnding,
  type SilenceScope,
  UNRESOLVED_STATES,
} from "#model/kinds.ts";
import { parseDetails } from "#stages/alerting/alert-details.ts";
import { type SilenceChoice, silenceChoices } from "#stages/alerting/message/silence-choices.ts";
import { type Matchers, wouldMute } from "#stages/alerting/silence.ts";
import { toSilencedAlert } from "#stages/alerting/to-silenced-alert.ts";
import { maskAddress } from "#stages/archive/mask/mask.ts";
import { maskText } from "#stages/archive/mask/mask-text.ts";
import { replaceInJson } from "#stages/privacy/replace-addresses.ts";

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
    return { id: await storeSilence(tx, wanted), ...planned };
  });
}

/** Stores a silence and its audit entry. Returns its number. */
export async function storeSilence(tx: Queryable, wanted: WantedSilence): Promise<number> {
  const { matchers, reason, by, actor = by } = wanted;
  const { startsAt, expiresAt } = spanOf(wanted);
  const span = { startsAt: new Date(startsAt), expiresAt: new Date(expiresAt) };
  const id = await insertSilence(tx, { ...span, createdBy: by, reason, matchers });
  await writeAuditEntry(tx, {
    actor: maskText(actor),
    action: "silence.added",
    subject: `silence ${id}`,
    // Masked, because an erasure does not change audit entries. It does change the silence itself.
    details: {
      matchers: maskMatchers(matchers),
      reason: maskText(reason),
      expiresAt: span.expiresAt.toISOString(),
    },
  });
  return id;
}

function spanOf({ nowMs, durationMs }: WantedSilence): { startsAt: number; expiresAt: number } {
  return {
    // Starts before now, so that it is active for a replica whose clock is slightly late.
    startsAt: Math.floor(nowMs / MINUTE_MS) * MINUTE_MS,
    // Whole seconds, because lists print whole seconds.
    expiresAt: Math.round((nowMs + durationMs) / SECOND_MS) * SECOND_MS,
  };
}

/** Masks addresses in the matchers: a rule in a matcher is text that a person typed. */
function maskMatchers(matchers: Matchers): unknown {
  return replaceInJson(matchers, maskAddress, { dropTraits: false });
}

/** Returns the silence that would be added and the alerts that it would mute. Writes nothing. */
export async function planSilence(db: Queryable, wanted: WantedSilence): Promise<PlannedSilence> {
  const { matchers, reason, by, nowMs } = wanted;
  const unresolved = await listAlerts(db, { states: UNRESOLVED_STATES, limit: MAX_ALERTS });
  const alertIds = unresolved.filter((row) => wouldMute(matchers, toSilencedAlert(row))).map(({ id }) => id);
  const equalIds = await findEqual(db, matchers, nowMs);
  return { ...spanOf(wanted), matchers, reason, createdBy: by, alertIds, equalIds };
}

async function findEqual(db: Queryable, matchers: Matchers, nowMs: number): Promise<number[]> {
  const page = {
    zoneIds: null,
    states: LASTING_SILENCE_STATES,
    nowMs,
    beforeId: undefined,
    limit: MAX_SILENCES,
  };
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
export type UnsilenceableAlert = "unknown" | "about-longwatch" | "many-zones" | "no-such-scope";

/**
 * Returns matchers for an alert's address, network or other source, for its rule, or for its zone. Without a scope, the
 * narrowest: an alert is widened to its zone only if it is about many rules. `hasAddresses`: whether the matchers may name
 * an address.
 */
export async function matchAlert(
  db: Queryable,
  alertId: number,
  { scope, hasAddresses = true }: { readonly scope?: SilenceScope; readonly hasAddresses?: boolean } = {},
): Promise<Matchers | UnsilenceableAlert> {
  const row = await readAlert(db, alertId);
  if (row === null) return "unknown";
  const { kind, zoneId, details } = row;
  const { message } = parseDetails(details);
  if (kind === "self" || message === null) return "about-longwatch";
  if (zoneId === null) return "many-zones";
  const choices = silenceChoices(message).filter((one) => hasAddresses || one.matchers.ip === undefined);
  const isWanted = (one: SilenceChoice) =>
    scope === undefined ? one.scope !== "zone" || kind === GROUP_KIND : one.scope === scope;
  return choices.find(isWanted)?.matchers ?? "no-such-scope";
}

export interface SilenceExtension {
  readonly id: number;
  readonly expiresAtMs: number;
  readonly by: string;
  readonly actor?: string;
  readonly nowMs: number;
}

/** Moves the end of a silence to a later time and writes an audit entry. */
export function extendSilenceByHand(
  database: Database,
  { id, by, actor = by, ...times }: SilenceExtension,
): ReturnType<typeof extendSilence> {
  return inTransaction(database, async ({ tx }) => {
    const extended = await extendSilence(tx, id, times);
    if (typeof extended === "object")
      await writeAuditEntry(tx, {
        actor: maskText(actor),
        action: "silence.extended",
        subject: `silence ${id}`,
        details: { expiresAt: extended.expiresAt.toISOString() },
      });
    return extended;
  });
}

/** Ends a silence now and writes an audit entry. If two callers end it at once, one succeeds. */
export function endSilence(
  database: Database,
  { id, by, actor = by, nowMs }: { id: number; by: string; actor?: string; nowMs: number },
): Promise<SilenceEnding | "unknown"> {
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
