/** The rule families of the OWASP Core Rule Set, by the first three digits of the rule id. */
const FAMILIES: Readonly<Record<string, string>> = {
  911: "Method enforcement",
  913: "Scanner detection",
  920: "Protocol enforcement",
  921: "Protocol attack",
  922: "Multipart attack",
  930: "Local file inclusion",
  931: "Remote file inclusion",
  932: "Remote command execution",
  933: "PHP injection",
  934: "Generic application attack",
  941: "Cross-site scripting",
  942: "SQL injection",
  943: "Session fixation",
  944: "Java attack (Log4j included)",
  949: "Inbound anomaly score",
  950: "Data leakage",
  951: "SQL data leakage",
  952: "Java data leakage",
  953: "PHP data leakage",
  954: "IIS data leakage",
  955: "Web shell",
  959: "Outbound anomaly score",
  980: "Anomaly score correlation",
};

/**
 * Returns the subject of a managed rule; null for every other rule (a customer's own rules have long numbers without
 * meaning).
 */
export function ruleTitle(ruleId: string | null): string | null {
  return ruleId !== null && /^9\d{5}$/.test(ruleId) ? (FAMILIES[ruleId.slice(0, 3)] ?? null) : null;
}

/** `SQL injection: rule 942100`. */
export function nameRule(ruleId: string): string {
  const title = ruleTitle(ruleId);
  return `${title === null ? "" : `${title}: `}rule ${ruleId}`;
}
