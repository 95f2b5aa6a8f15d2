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

/** Requests of a sender on one day, by whose they are. Texts are hostile, and times epoch ms. */
export interface SenderCount extends Readonly<Record<RequestClass, number>> {
  /** Whole days of 24 hours between the requests and the end of the span. */
  readonly ago: number;
  readonly ip: string;
  readonly asn: string;
  readonly ja4: string;
  readonly first: number;
  /** The first and the last hostile request; null if there is none. */
  readonly from: number | null;
  readonly to: number | null;
  /** Hostile requests with a key that an incident shares with others: its rule, path, fingerprint or network. */
  readonly found: number;
}

/** A key of an incident that others may have, and its span. */
export type SharedKey = Pick<RequestFinding, "key" | "from" | "to"> & {
  readonly kind: "rule" | "path" | "ja4" | "asn";
};
