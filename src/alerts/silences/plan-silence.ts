import { parseDetails } from "#alerts/rules/alert-record.ts";
import { attackerChoice, type SilenceChoice, silenceChoices } from "#alerts/rules/message/commands.ts";
import { type Matchers, toSilencedAlert, wouldMute } from "#alerts/rules/silence.ts";
import { maskAddress, maskText } from "#archive/rules/mask.ts";
import { listAlerts } from "#db/alerts/alert-reports.ts";
import type { AlertRow } from "#db/alerts/alerts.ts";
import { insertSilence, pageSilences } from "#db/alerts/silences.ts";
import type { Queryable } from "#db/client.ts";
import { isAddress } from "#detection/rules/incidents/incident.ts";
import { isObject } from "#lib/json.ts";
import { MINUTE_MS, SECOND_MS } from "#lib/units.ts";
import { attackerIdOf } from "#model/fingerprint.ts";
import {
  LASTING_SILENCE_STATES,
  type SilenceScope,
  type SourceKind,
  UNRESOLVED_STATES,
} from "#model/kinds.ts";
import type { Caller } from "#operations/caller.ts";
import { replaceInJson } from "#people/rules/replace-addresses.ts";

/** The most alerts that are read to find those that a silence mutes now. */
const MAX_ALERTS = 10_000;
/** The most silences that are compared with a new one. */
const MAX_SILENCES = 1_000;

/** A silence that a person wants. Times in epoch ms. */
export interface WantedSilence {
  readonly matchers: Matchers;
  readonly expiresAtMs: number;
  /** Untrusted text, as is `by`. */
  readonly reason: string;
  readonly by: string;
  readonly nowMs: number;
}

/** Stores a silence. Returns its number and its audit entry. */
export async function storeSilence(tx: Queryable, wanted: WantedSilence) {
  const { matchers, reason, by } = wanted;
  const { startsAt, expiresAt } = spanOf(wanted);
  const id = await insertSilence(tx, { startsAt, expiresAt, createdBy: by, reason, matchers });
  const audit = {
    action: "silence.added",
    subject: `silence ${id}`,
    // Masked, because an erasure does not change audit entries. It does change the silence itself. A rule in a matcher
    // is text that a person typed, too.
    details: {
      matchers: replaceInJson(matchers, maskAddress, { dropTraits: false }),
      reason: maskText(reason),
      expiresAt: expiresAt.toISOString(),
    },
  };
  return { id, audit };
}

function spanOf({ nowMs, expiresAtMs }: WantedSilence): { startsAt: Date; expiresAt: Date } {
  return {
    // Starts before now, so that it is active for a replica whose clock is slightly late.
    startsAt: new Date(Math.floor(nowMs / MINUTE_MS) * MINUTE_MS),
    // Whole seconds, because lists print whole seconds.
    expiresAt: new Date(Math.round(expiresAtMs / SECOND_MS) * SECOND_MS),
  };
}

/**
 * Returns the silence that would be added, the unresolved alerts that it would mute, the newest first, and the silences
 * with the same matchers that are not over. Writes nothing.
 */
export async function planSilence(db: Queryable, wanted: WantedSilence) {
  const { matchers, reason, by, nowMs } = wanted;
  const unresolved = await listAlerts(db, { states: UNRESOLVED_STATES, limit: MAX_ALERTS });
  const alertIds = unresolved.filter((row) => wouldMute(matchers, toSilencedAlert(row))).map(({ id }) => id);
  const equalIds = await findEqual(db, matchers, nowMs);
  const { startsAt, expiresAt } = spanOf(wanted);
  return {
    startsAt: startsAt.toISOString(),
    expiresAt: expiresAt.toISOString(),
    matchers,
    reason,
    createdBy: by,
    alertIds,
    equalIds,
  };
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

/**
 * Returns the attacker with this key (`203.0.113.9`) or name (`rules_per_ip=203.0.113.9`). A masked caller cannot try
 * addresses. A text says that the alert has none.
 */
export function findAttacker<One extends { readonly kind: SourceKind; readonly key: string }>(
  { id }: Pick<AlertRow, "id">,
  attackers: readonly One[],
  { masked, attacker }: { readonly masked: boolean; readonly attacker: string },
): One | string {
  const found = attackers.find(
    (one) => (one.key === attacker || attackerIdOf(one) === attacker) && !(masked && isAddress(one)),
  );
  return found ?? `Alert ${id} has no such attacker. The details of the alert list its attackers.`;
}

/**
 * Returns matchers for the alert's address, network or other source, for its rule, or for its zone. Without a scope, the
 * narrowest: an alert is widened to its zone only if it is about many rules. For a masked caller, the matchers name no
 * address. A text says why no silence can be made from the alert.
 */
export function matchAlert(
  row: AlertRow,
  { masked }: Pick<Caller, "masked">,
  {
    scope,
    attacker,
  }: { readonly scope?: SilenceScope | undefined; readonly attacker?: string | undefined } = {},
): Matchers | string {
  const { id, kind, zoneId, details } = row;
  const { message } = parseDetails(details);
  if (attacker !== undefined) {
    const named = findAttacker(row, message?.attackers ?? [], { masked, attacker });
    if (typeof named === "string") return named;
    const rule = "Silences match a whole address, a network, a JA4, a user agent or a path.";
    return (
      attackerChoice(zoneId, named)?.matchers ??
      `No silence can name this attacker of alert ${id}. ${rule} Silence another attacker, or the whole alert.`
    );
  }
  if (kind === "self" || message === null)
    return `Alert ${id} is about Longwatch itself. Only a silence for the kind self mutes such alerts.`;
  if (zoneId === null) return `Alert ${id} is about rules in several zones. Name the zones in the silence.`;
  const choices = silenceChoices(message, masked);
  const isWanted = (one: SilenceChoice) => (scope === undefined ? one.scope !== "zone" : one.scope === scope);
  const matchers = choices.find(isWanted)?.matchers;
  if (matchers !== undefined) return matchers;
  return scope === "source"
    ? `Alert ${id} has no address or network that most of its events share. Silence its rule or its zone.`
    : `Alert ${id} is about no rule that a silence can name. Silence its zone.`;
}
