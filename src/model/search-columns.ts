/**
 * The columns of events that a search can ask, in Postgres and in the archive's files, by the names of the search
 * language. A rule's name is its message.
 */
export const SEARCH_COLUMNS = {
  feature: "feature",
  ruleId: "rule_id",
  ip: "ip",
  ja4: "ja4",
  ua: "ua",
  url: "url",
  asn: "asn",
  country: "country",
  action: "action",
  message: "message",
} as const;
export type SearchColumn = keyof typeof SEARCH_COLUMNS;
export type SearchDimension = Exclude<SearchColumn, "message">;
