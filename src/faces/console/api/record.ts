import { readHeaders, readMatch } from "#model/record-parts.ts";

export interface DecodedRecord {
  readonly message: string;
  readonly body: string;
  /** The text that the rule found, and where. */
  readonly matched: string;
  readonly matchedIn: string;
  readonly headers: readonly (readonly [string, string])[];
  /** Every other member, so that nothing of the record is hidden. */
  readonly others: readonly (readonly [string, string])[];
}

const SHOWN = new Set(["Message", "Url", "UrlEncodedBody", "Headers", "TriggerMatch"]);

/** Reads a record of the platform. Every member may be missing or of another type: records are kept as they came. */
export function readRecord(log: Record<string, unknown> | null): DecodedRecord {
  const record = log ?? {};
  const match = readMatch(record["TriggerMatch"]);
  return {
    message: toText(record["Message"]),
    body: toText(record["UrlEncodedBody"]),
    matched: toText(match?.value),
    matchedIn: toText(match?.name),
    headers: readHeaders(record["Headers"]).map(({ name, value }) => [toText(name), toText(value)]),
    others: Object.entries(record).flatMap(([name, value]) =>
      // If there are several matches, only the first one is shown apart. The list then stays among the other members.
      SHOWN.has(name) && (name !== "TriggerMatch" || !Array.isArray(value) || value.length < 2)
        ? []
        : [[name, toText(value)] as const],
    ),
  };
}

function toText(value: unknown): string {
  if (value === null || value === undefined) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** Decodes the percent signs of an address as far as they are valid: attacks often are not. */
export function decodeUrl(url: string): string {
  return url.replaceAll(/(?:%[0-9a-f]{2})+/gi, (encoded) => {
    try {
      return decodeURIComponent(encoded);
    } catch {
      return encoded;
    }
  });
}
