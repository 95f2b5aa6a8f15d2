import { usePageLink } from "./url-state.ts";

/** Returns the address of a rule's page. The rule is a parameter, because its id may be any text. */
export function useRuleLink(): (zoneId: number, ruleId: string) => string {
  const link = usePageLink();
  return (zoneId, ruleId) => link(`/rules/${zoneId}`, { rule: ruleId });
}
