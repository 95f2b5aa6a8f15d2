/** Whose requests a rule matches. */

/** Hostile requests are of attackers, and machines are crawlers, monitors and programs of the site. */
export type RequestClass = "hostile" | "machine" | "visitor" | "unknown";

/** What an incident, a spike or a person says about the requests with a value in a span. The key is hostile text. */
export interface RequestFinding {
  readonly kind: "ip" | "asn" | "ja4" | "ua" | "path" | "rule";
  readonly key: string;
  /** Epoch ms; both ends belong to it. */
  readonly from: number;
  readonly to: number;
  readonly says: "hostile" | "machine" | "visitor";
}
