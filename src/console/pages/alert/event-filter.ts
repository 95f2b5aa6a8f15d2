import type { AlertDetail } from "../../api/alert.ts";
import type { Dimension } from "../../look/words.ts";

interface EventFilter {
  readonly field: Dimension;
  readonly value: string;
}

/** The value that nearly every event of a sources alert shares, the narrowest dimension first. */
const SHARED = [
  ["ips", "ip"],
  ["ja4s", "ja4"],
  ["userAgents", "ua"],
  ["asns", "asn"],
] as const;
const NEARLY_ALL = 0.95;

/** Returns the filter that finds the events of an alert: its rule, or the source that it names. Null if there is none. */
export function toEventFilter({
  kind,
  ruleId,
  evidence,
}: Pick<AlertDetail, "kind" | "ruleId" | "evidence">): EventFilter | null {
  if (kind !== "sources") return ruleId === null ? null : { field: "ruleId", value: ruleId };
  for (const [name, field] of SHARED) {
    const top = evidence?.[name]?.[0];
    if (top !== undefined && top.share >= NEARLY_ALL) return { field, value: top.value };
  }
  return null;
}
