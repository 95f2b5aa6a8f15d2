import { MINUTE_MS } from "#lib/units.ts";
import { isChangeKind } from "#model/rules.ts";
import type { AlertDetail } from "../../api/queries.ts";
import type { EventFilter, PageEvents } from "../../state/filters.ts";
import { toUrlTime } from "../../state/span.ts";

/** The value that nearly every event of a sources alert shares, the narrowest field first. */
const SHARED = [
  ["ips", "address"],
  ["ja4s", "ja4"],
  ["userAgents", "agent"],
  ["asns", "network"],
] as const;
const NEARLY_ALL = 0.95;
const BEFORE_MS = 15 * MINUTE_MS;
const AFTER_MS = 5 * MINUTE_MS;

/** Returns whether an alert is about the rule that it names. Groups and alerts about Longwatch itself name none. */
export function hasRule({ kind }: Pick<AlertDetail, "kind">): boolean {
  return kind !== "sources" && !isChangeKind(kind);
}

/** Returns the filter that finds the events of an alert: its rule, or the source that it names. Null if there is none. */
export function toEventFilter({
  kind,
  ruleId,
  rules,
  evidence,
}: Pick<AlertDetail, "kind" | "ruleId" | "rules" | "evidence">): EventFilter | null {
  const [only, ...others] = rules;
  if (only !== undefined) return others.length === 0 ? { kind: "is", field: "rule", value: only } : null;
  if (hasRule({ kind })) return ruleId === null ? null : { kind: "is", field: "rule", value: ruleId };
  for (const [name, field] of SHARED) {
    const top = evidence?.[name]?.[0];
    if (top !== undefined && top.share >= NEARLY_ALL) return { kind: "is", field, value: top.value };
  }
  return null;
}

/** Returns the events of an alert: of its zone and its rule or source, from a little before to a little after it. */
export function toAlertEvents(
  alert: Pick<AlertDetail, "kind" | "ruleId" | "rules" | "evidence" | "zoneId" | "firedAt" | "resolvedAt">,
): PageEvents {
  const filter = toEventFilter(alert);
  const { zoneId, firedAt, resolvedAt } = alert;
  const span = toSpanParams(Date.parse(firedAt), resolvedAt === null ? Date.now() : Date.parse(resolvedAt));
  return {
    filters: filter === null ? [] : [filter],
    params: { ...span, ...(zoneId === null ? {} : { zone: String(zoneId) }) },
  };
}

/** Returns the parameters of a span with some minutes before and after it. */
export function toSpanParams(fromMs: number, toMs: number) {
  return { span: null, from: toUrlTime(fromMs - BEFORE_MS), to: toUrlTime(toMs + AFTER_MS) };
}
