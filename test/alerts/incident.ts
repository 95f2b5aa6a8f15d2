import { MINUTE_MS } from "#lib/units.ts";
import { SOURCES_RULE, type StoredAttacker, type StoredSources } from "#model/stored-sources.ts";
import { NOW } from "./support.ts";

/** An address that triggers many rules. */
export const SCANNER = {
  kind: "rules_per_ip",
  members: 41,
  usualMembers: 0,
  windowMinutes: 15,
  count: 41,
  usual: 4.2,
  threshold: 16.3,
  score: 5.1,
  role: "opened",
} as const;

/** Returns an address that triggers many rules, active from so many minutes after NOW on. */
export function attackerOf(
  key: string,
  minutes = 0,
  over: Partial<Omit<StoredAttacker, "since" | "lastFiredAt">> & { readonly lastMinutes?: number } = {},
): StoredAttacker {
  const { lastMinutes = minutes, ...rest } = over;
  return {
    ...SCANNER,
    key,
    since: NOW / MINUTE_MS + minutes,
    lastFiredAt: NOW / MINUTE_MS + lastMinutes,
    ...rest,
  };
}

export function sourcesOf(
  findings: readonly StoredAttacker[],
  over: Partial<StoredSources> = {},
): StoredSources {
  return {
    kind: findings[0]?.kind ?? "rules_per_ip",
    findings: [...findings],
    unnamed: 0,
    grown: [],
    rules: [],
    events: 80,
    isMasked: false,
    ...over,
  };
}

/** The members of a spike that make it an incident. */
export function incidentOf(...attackers: readonly StoredAttacker[]) {
  return {
    ruleId: SOURCES_RULE,
    kind: "sources" as const,
    severity: "error" as const,
    incident: "1.1",
    windowMinutes: 15 as const,
    sources: sourcesOf(attackers),
  };
}
