import { MANY_ADDRESSES } from "#model/few-addresses.ts";
import { isGraver } from "#model/severity.ts";
import { isSureAttack, type StoredVerdict } from "#model/verdict.ts";
import type { AlertSpike } from "./alert-spike.ts";
import { DEFAULT_EFFECTS, type VerdictEffects } from "./routing/routing.ts";

/**
 * Returns the spike with the severity that its verdicts make of it. One look that is almost certain of an attack raises it for
 * good. All looks have to agree to lower it. A misfire has no effect: an attacker can imitate visitors.
 */
export function gradeByVerdicts(
  spike: AlertSpike,
  verdicts: readonly StoredVerdict[],
  effects: VerdictEffects = DEFAULT_EFFECTS,
): AlertSpike {
  // A new rule's burst stays news.
  if (verdicts.length === 0 || spike.severity === "info") return spike;
  if (verdicts.some(isSureAttack)) return effects.raise ? { ...spike, severity: "critical" } : spike;
  const isLower = isGraver(spike.severity, "warning") && verdicts.every((one) => isLowered(one, effects));
  return isLower ? { ...spike, severity: "warning" } : spike;
}

function isLowered({ said, counts }: StoredVerdict, { lower }: VerdictEffects): boolean {
  // A botnet can imitate one client that repeats a request.
  if (said === "broken-client" && counts.addresses >= MANY_ADDRESSES) return false;
  return lower.some((one) => one === said);
}
