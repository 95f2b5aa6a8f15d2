/** Commands that a message offers: silences and exclusions. */

import { refuseRule } from "#detection/rules/exclusion/propose-exclusion.ts";
import { holdsPlaceholder, templateOf } from "#detection/rules/verdict/path-template.ts";
import type { ExclusionClause } from "#model/advice.ts";
import type { AlertMessage } from "#model/alert-message.ts";
import { readNetworkNumber } from "#model/ip-address.ts";
import type { AttackerRole, ChangeKind, SilenceScope, SourceKind, SourceTrait } from "#model/kinds.ts";
import { isChangeKind } from "#model/rules.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { isAddressPattern, type SourceTraits, TRAIT_OF } from "#model/subject.ts";
import type { StoredVerdict } from "#model/verdict.ts";
import type { AlertSpike } from "../alert-spike.ts";
import type { Matchers } from "../silence.ts";

export interface SilenceChoice {
  readonly scope: SilenceScope;
  readonly matchers: Matchers;
}

/** An alert as its silences name it. */
interface SilenceSubject extends Pick<AlertMessage, "kind" | "zoneId" | "ruleId"> {
  readonly rules?: readonly string[] | undefined;
  readonly traits?: SourceTraits | undefined;
  readonly silenceBy?: readonly SourceTrait[] | undefined;
  /** Attackers of an incident. Those of a spike are all active. */
  readonly attackers?:
    | readonly { readonly traits: SourceTraits; readonly isActive?: boolean; readonly role?: AttackerRole }[]
    | undefined;
}

/** The most characters of a value of a matcher. */
const MAX_VALUE_CHARS = 300;

/**
 * Returns the silences that can be made from an alert, the narrowest first: its address, network or other source, then
 * its rule, then its zone. None for an alert about Longwatch itself or about several zones. A masked caller must not name an address.
 */
export function silenceChoices(
  { kind, zoneId, ruleId, rules = [], traits = {}, silenceBy = [], attackers = [] }: SilenceSubject,
  isMasked = false,
): SilenceChoice[] {
  if (zoneId === null || kind === "self") return [];
  const zone = [zoneId];
  const active = attackers.filter(({ isActive = true, role }) => isActive && role !== "facet");
  // A silence mutes an incident if it matches every attacker.
  const muted = active.length > 1 ? active.map((one) => one.traits) : [traits];
  const sources = silenceBy.flatMap((trait): SilenceChoice[] => {
    if (isMasked && trait === "ip") return [];
    const patterns = muted.flatMap((one) => toPattern(trait, one[trait]?.[0] ?? "") ?? []);
    if (patterns.length < muted.length) return [];
    return [{ scope: "source", matchers: { zone, [trait]: [...new Set(patterns)] } }];
  });
  const [only = null, ...others] = rules;
  const ofRules = isChangeKind(kind)
    ? ofChanges(zone, kind, others.length === 0 ? only : null)
    : ofRule(zone, kind, ruleId);
  return [...sources, ...ofRules, { scope: "zone", matchers: { zone } }];
}

/** Returns the silence of one attacker of an incident; null if no pattern matches its key alone, as of a masked address. */
export function attackerChoice(
  zoneId: number | null,
  { kind, key }: { readonly kind: SourceKind; readonly key: string },
): SilenceChoice | null {
  const trait = TRAIT_OF[kind];
  const pattern = toPattern(trait, key);
  if (zoneId === null || pattern === null) return null;
  return { scope: "source", matchers: { zone: [zoneId], [trait]: [pattern] } };
}

/** An id that ends in `*` would, as a matcher, match every rule that begins with it. */
function ofRule(zone: number[], kind: AlertMessage["kind"], ruleId: string | null): SilenceChoice[] {
  if (kind === "sources") return [{ scope: "rule", matchers: { zone, kind: ["sources"] } }];
  return isNameable(ruleId) ? [{ scope: "rule", matchers: { zone, rule: [ruleId] } }] : [];
}

/** Only changes of this kind: spikes of the rule still notify. */
function ofChanges(zone: number[], kind: ChangeKind, ruleId: string | null): SilenceChoice[] {
  const rule = isNameable(ruleId) ? { rule: [ruleId] } : {};
  return [{ scope: "rule", matchers: { zone, ...rule, kind: [kind] } }];
}

function isNameable(ruleId: string | null): ruleId is string {
  return ruleId !== null && ruleId !== "" && !ruleId.endsWith("*");
}

/** Returns the pattern that matches this value and no other; null if there is none. The value is hostile text. */
function toPattern(trait: SourceTrait, value: string): string | null {
  if (trait === "ip") return isAddressPattern(value) ? value : null;
  const network = trait === "asn" ? readNetworkNumber(value) : null;
  if (network !== null) return `AS${network}`;
  const isPlain = value !== "" && value === value.trim() && !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(value);
  return isPlain &&
    value.length <= MAX_VALUE_CHARS &&
    !((trait === "url" || trait === "ua") && value.endsWith("*"))
    ? value
    : null;
}

/** The program's name is fixed, because a message is read on any machine; the terminal prints how to call it there. */
export const LONGWATCH = "longwatch";
const MAX_TYPED_CHARS = 100;
const MAX_OPTIONS = 8;

/**
 * Returns the command that makes the first of the choices, to be copied into a shell. Values of events are hostile text,
 * so they are quoted. If a channel would have to change a value to show it, the command names the alert instead; null if no
 * alert can stand for it.
 */
export function silenceCommand(alertId: number | null, [choice]: readonly SilenceChoice[]): string | null {
  if (choice === undefined) return null;
  const subject =
    toOptions(choice.matchers) ?? (alertId === null ? null : `--alert ${alertId} --scope ${choice.scope}`);
  if (subject === null) return null;
  return `${LONGWATCH} silences add ${subject} --for ${choice.scope === "zone" ? "30m" : "2h"} --reason 'why'`;
}

/** Returns the matchers as options of `silences add`; null if a value cannot be shown unchanged. */
function toOptions(matchers: Matchers): string | null {
  const options: string[] = [];
  for (const [name, values = []] of Object.entries(matchers))
    for (const value of values.map(String)) {
      if (!canBeTyped(value)) return null;
      options.push(`--${name}${name === "zone" || name === "kind" ? " " : "="}${quoteForShell(value)}`);
    }
  return options.length > MAX_OPTIONS ? null : options.join(" ");
}

/** Printable ASCII that no channel collapses, defuses or cuts. */
function canBeTyped(value: string): boolean {
  return (
    value.length <= MAX_TYPED_CHARS &&
    /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/.test(value) &&
    !/:\/\/|www\.|mailto:|[`*<>&]/i.test(value)
  );
}

/** Returns the text as one word of a POSIX shell. Inside single quotes only the quote itself has a meaning. */
function quoteForShell(text: string): string {
  return /^[\w.,:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

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
