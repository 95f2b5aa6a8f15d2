/** The eleven operations, with their names in faults and the request log. */
export const OPERATIONS = [
  "list-api-keys",
  "set-hostname-key-type",
  "check-dns-zone",
  "add-container",
  "update-application",
  "delete-volume-instances",
  "search-event-logs",
  "export-event-logs",
  "list-event-logs",
  "recommend-rule",
  "rule-metrics",
] as const;
export type Operation = (typeof OPERATIONS)[number];
