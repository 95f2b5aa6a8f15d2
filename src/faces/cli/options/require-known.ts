import type { Config } from "#config/config.ts";
import type { Queryable } from "#db/client.ts";
import {
  findKnownZones,
  isCountedRule,
  listBusiestRules,
  listNamableZones,
} from "#db/privacy/known-subjects.ts";
import { UsageError } from "#lib/errors.ts";
import { closestName, escapeText } from "#lib/text.ts";
import { nameKnown } from "#operations/name-known.ts";

const MAX_NAMED = 20;
const MAX_NAME_CHARS = 64;

/**
 * Checks that every zone is configured or has stored data. A zone that is no longer watched keeps its history.
 * @throws {UsageError} with a mistake for every other zone. Without this check, a misspelt zone would look like a zone
 * without problems.
 */
export async function requireZones(
  db: Queryable,
  { edge }: Pick<Config, "edge">,
  zoneIds: readonly number[],
  flag = "zone",
): Promise<void> {
  const asked = zoneIds.filter((id) => !edge.zones.includes(id));
  if (asked.length === 0) return;
  const stored = await findKnownZones(db, asked);
  const unknown = asked.filter((id) => !stored.includes(id));
  if (unknown.length === 0) return;
  const known = [...new Set([...edge.zones, ...(await listNamableZones(db))])].sort((a, b) => a - b);
  const rule = `a shield zone that is configured or has stored data (${nameKnown(known)})`;
  throw new UsageError(unknown.map((id) => `--${flag} "${id}" must be ${rule}`));
}

/** @throws {UsageError} for a rule without a single event in the zone */
export async function requireRule(db: Queryable, zoneId: number, ruleId: string): Promise<void> {
  if (await isCountedRule(db, zoneId, ruleId)) return;
  const busiest = await listBusiestRules(db, zoneId, MAX_NAMED);
  const rule = `a rule with events in zone ${zoneId} (${nameKnown(busiest.map((one) => escapeText(one).slice(0, MAX_NAME_CHARS)))})`;
  throw new UsageError([`--rule "${escapeText(ruleId)}" must be ${rule}${guess(ruleId, busiest)}`]);
}

function guess(typed: string, known: readonly string[]): string {
  const meant = closestName(typed, known);
  return meant === null ? "" : `: did you mean ${escapeText(meant)}?`;
}
