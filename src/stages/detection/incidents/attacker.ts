import type { AttackerRole, SourceKind } from "#model/kinds.ts";
import type { Fire } from "../sources/judge-sources.ts";
import { type SourceEvent, sourceKeyOf, toSourceKey } from "../sources/source-event.ts";

/** The most rules of an address that are kept for the comparison with other addresses. */
const MAX_RULES = 50;

/** The tool of an address: the values that its events show most, and its rules. Hostile text. */
export interface Tool {
  readonly ja4: string;
  readonly ua: string;
  readonly rules: string[];
}

/** A key of an incident, with the strongest of its minutes. Times are the ends of minutes since the epoch. */
export interface Attacker extends Fire {
  readonly role: AttackerRole;
  readonly since: number;
  readonly lastFiredAt: number;
  /** Of an address; null if it is not known. */
  readonly tool: Tool | null;
}

/** An address is an attacker of its own. The other keys are shared: a fingerprint, user agent, network or path. */
export function isAddress({ kind }: { readonly kind: SourceKind }): boolean {
  return kind === "rules_per_ip";
}

/** Returns a function that tests whether an event is one of an attacker's. */
export function createAttackerTest(
  attackers: readonly { readonly kind: SourceKind; readonly key: string }[],
): (event: SourceEvent) => boolean {
  const keys = new Map<SourceKind, Set<string>>();
  for (const { kind, key } of attackers) keys.set(kind, (keys.get(kind) ?? new Set()).add(key));
  const byKind = [...keys];
  return (event) => byKind.some(([kind, known]) => known.has(sourceKeyOf(kind, event)));
}

/** Returns the tool of an address from its events. */
export function toTool(events: readonly SourceEvent[]): Tool {
  const rules = new Set(events.map(({ ruleId }) => toSourceKey(ruleId)));
  rules.delete("");
  return {
    ja4: commonest(events.map(({ ja4 }) => toSourceKey(ja4))),
    ua: commonest(events.map(({ ua }) => toSourceKey(ua))),
    rules: [...rules].slice(0, MAX_RULES),
  };
}

function commonest(values: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].reduce((most, one) => (one[1] > most[1] ? one : most), ["", 0] as [string, number])[0];
}

/**
 * Returns whether two addresses are probably one attacker: of one network of 256 addresses (of IPv6: /48), or with the
 * same tool and half of the rules of the smaller one in common.
 */
export function areLinked(one: Attacker, other: Attacker): boolean {
  if (!isAddress(one) || !isAddress(other)) return false;
  const network = networkOf(one.key);
  if (network !== null && network === networkOf(other.key)) return true;
  if (one.tool === null || other.tool === null) return false;
  const isSameTool = one.tool.ja4 === other.tool.ja4 && one.tool.ua === other.tool.ua;
  if (!isSameTool || (one.tool.ja4 === "" && one.tool.ua === "")) return false;
  const rules = new Set(one.tool.rules);
  const common = other.tool.rules.filter((rule) => rules.has(rule)).length;
  return common > 0 && 2 * common >= Math.min(rules.size, other.tool.rules.length);
}

/** Null for a masked or unusual address. */
function networkOf(key: string): string | null {
  const ipv4 = /^(\d{1,3}\.\d{1,3}\.\d{1,3})\.\d{1,3}$/.exec(key);
  if (ipv4 !== null) return ipv4[1] ?? null;
  return /^([0-9a-f]*:[0-9a-f]*:[0-9a-f]*):[0-9a-f]*::\/64$/.exec(key)?.[1] ?? null;
}
