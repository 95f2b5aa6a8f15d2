import type { ExclusionClause } from "#model/advice.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import { refuseRule } from "#stages/detection/exclusion/propose-exclusion.ts";
import { holdsPlaceholder, templateOf } from "#stages/detection/verdict/path-template.ts";
import type { AlertSpike } from "../alert-spike.ts";
import { canBeTyped, LONGWATCH, quoteForShell } from "./silence-command.ts";

type Exclusion = NonNullable<AlertMessage["exclusion"]>;

/**
 * Returns for a misfire the command that shows what its exclusion would have silenced, or the reason why there is none. The
 * exclusion is the proposed one, or before there is a proposal, that of the sample request. Undefined for other verdicts.
 */
export function exclusionOf(
  { zoneId, ruleId }: Pick<AlertSpike, "zoneId" | "ruleId">,
  verdict: StoredVerdict | NonNullable<AlertMessage["verdict"]>,
): Exclusion | undefined {
  if (verdict.said !== "misfire") return undefined;
  const refuse = (reason: string): Exclusion => ({ command: null, reason });
  if (ruleId === SOURCES_RULE)
    return refuse("None yet: an exclusion is for one rule. See the alerts of the rules of this incident.");
  const refusal = refuseRule(ruleId);
  if (refusal !== null) return refuse(`None: ${refusal}`);
  const proposal = "exclusion" in verdict ? verdict.exclusion : null;
  if (proposal != null && proposal.refusal !== null) return refuse(`None: ${proposal.refusal}`);
  const clause = proposal?.clauses[0] ?? clauseOf(ruleId, verdict.sample);
  if (clause === null) return refuse("None yet: no sample request names a path.");
  const command = commandOf(zoneId, clause);
  return command === null
    ? refuse("None yet: the path of the sample request cannot be typed into a shell.")
    : { command, reason: null };
}

function clauseOf(ruleId: string, sample: StoredVerdict["sample"]): ExclusionClause | null {
  // The sample of a member of the same alert may be of another rule.
  if (sample === null || sample.ruleId !== ruleId || holdsPlaceholder(sample.url)) return null;
  const template = templateOf(sample.url);
  // Every path is wider than what one request shows.
  if (template === "" || template === "/") return null;
  return { ruleIds: [ruleId], template, method: sample.method || null, parameter: sample.parameter };
}

/** Returns the command; null if a value of the request cannot be shown unchanged by a channel. */
function commandOf(zoneId: number, { ruleIds, template, method, parameter }: ExclusionClause): string | null {
  const options = Object.entries({ rule: ruleIds[0] ?? "", path: template, method, parameter });
  const words: string[] = [];
  for (const [name, value] of options) {
    if (value === null) continue;
    // A value that begins with a hyphen would be read as an option.
    if (!canBeTyped(value) || value.startsWith("-")) return null;
    words.push(`--${name} ${quoteForShell(value)}`);
  }
  return `${LONGWATCH} exclusion try --zone ${zoneId} ${words.join(" ")}`;
}
