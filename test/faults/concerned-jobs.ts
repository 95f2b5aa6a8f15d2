/** Jobs that neither read the platform's events nor decide about hours. */
const UNCONCERNED: ReadonlySet<string> = new Set([
  "pseudonymise-ips",
  "erase-leftovers",
  "archive-days",
  "verify-archive",
  "detect-spikes",
  "detect-sources",
  "detect-rule-changes",
  "judge-conditions",
  "judge-verdicts",
  "judge-late",
  "send-digest",
  "learn-usual",
  "watch-plans",
  "fetch-advice",
  "raise-alerts",
  "deliver-alerts",
  "report-service",
  "send-heartbeat",
  "sweep",
]);

/**
 * Returns whether a job affects which events are stored and which hours are sealed. A new job counts until it is
 * named above.
 */
export function isConcerned(job: string): boolean {
  return !UNCONCERNED.has(job);
}
