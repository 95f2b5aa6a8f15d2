/** The eleven operations; the names appear in errors, metrics and budgets. */
export type EdgeOperation =
  | "list-api-keys"
  | "set-hostname-key-type"
  | "check-dns-zone"
  | "add-container"
  | "update-application"
  | "delete-volume-instances"
  | "search-event-logs"
  | "list-event-logs"
  | "export-event-logs"
  | "get-recommendation"
  | "get-rule-metrics";
