import type { Dimension } from "../query/search.ts";

/** The columns of an events file by the names of the search language. A rule's name is its message. */
export const COLUMNS: Readonly<Record<Dimension | "message", string>> = {
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
};
