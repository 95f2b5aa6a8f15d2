import { isObject } from "../lib/is-object.ts";
import { parseJson } from "../lib/parse-json.ts";

/** What the platform says about an event that says nothing about a person. */
const KEPT_LABELS = ["country", "ruleId", "severity", "ruleGroup", "status", "serverZone"];

/**
 * The record of an erased event: that it was, when, and which rule it met, in the form of the others. Done twice it stays
 * as it is.
 */
export function eraseRecord(raw: Buffer): Buffer {
  const entry = parseJson(raw.toString());
  const { logId, timestamp, labels } = isObject(entry) ? entry : {};
  const kept = Object.entries(isObject(labels) ? labels : {}).filter(([name]) => KEPT_LABELS.includes(name));
  return Buffer.from(JSON.stringify({ logId, timestamp, log: "{}", labels: Object.fromEntries(kept) }));
}
