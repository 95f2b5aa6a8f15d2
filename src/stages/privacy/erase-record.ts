import { isObject, parseJson } from "#lib/json.ts";

/** Labels that the platform sets and that say nothing about a person. */
const KEPT_LABELS = ["country", "ruleId", "severity", "ruleGroup", "status", "serverZone"];

/**
 * Returns the record of an erased event in the form of other records. It keeps that the event occurred, when, and
 * which rule matched. A second call changes nothing.
 */
export function eraseRecord(raw: Buffer): Buffer {
  const entry = parseJson(raw.toString());
  const { logId, timestamp, labels } = isObject(entry) ? entry : {};
  const kept = Object.entries(isObject(labels) ? labels : {}).filter(([name]) => KEPT_LABELS.includes(name));
  return Buffer.from(JSON.stringify({ logId, timestamp, log: "{}", labels: Object.fromEntries(kept) }));
}
