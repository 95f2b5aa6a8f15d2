import type { AlertMessage } from "#model/alert-message.ts";
import type { AttackerRole, ChangeKind, SilenceScope, SourceKind, SourceTrait } from "#model/kinds.ts";
import { isChangeKind } from "#model/rules.ts";
import { isAddressPattern, type SourceTraits, TRAIT_OF } from "#model/subject.ts";
import type { Matchers } from "../silence.ts";

export interface SilenceChoice {
  readonly scope: SilenceScope;
  readonly matchers: Matchers;
}

/** An alert as its silences name it. */
export interface SilenceSubject extends Pick<AlertMessage, "kind" | "zoneId" | "ruleId"> {
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
  const network = trait === "asn" ? /^(?:AS)?(\d+)\b/i.exec(value)?.[1] : undefined;
  if (network !== undefined) return `AS${network}`;
  const isPlain = value !== "" && value === value.trim() && !/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(value);
  return isPlain &&
    value.length <= MAX_VALUE_CHARS &&
    !((trait === "url" || trait === "ua") && value.endsWith("*"))
    ? value
    : null;
}
