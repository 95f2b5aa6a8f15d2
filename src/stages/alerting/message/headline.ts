import { formatRounded } from "#lib/format.ts";
import { isChangeKind } from "#model/rules.ts";
import { SOURCES_RULE } from "#model/stored-sources.ts";
import { nameZone } from "#model/zones.ts";
import type { AlertRecord } from "../alert-record.ts";
import { type AlertSpike, isCalm, isSettled } from "../alert-spike.ts";
import { headlineOfChanges } from "./describe-changes.ts";
import { describeIncident } from "./describe-incident.ts";
import { nameRule } from "./rule-title.ts";

/** Below this it would be shown as a multiple of nothing. */
const LEAST_USUAL = 0.05;

/**
 * The one line a phone shows: what, where, how much. Without severity and transition, which every channel sets itself.
 * Holds the rule's id, which is the log's text.
 */
export function headlineOf(spike: AlertSpike, state: AlertRecord["state"]): string {
  if (spike.kind === "sources") return headlineOfIncident(spike, state);
  if (isChangeKind(spike.kind)) return headlineOfChanges(spike, state);
  const { windowMinutes, windowCount, baseline, peak } = spike;
  const subject = nameSeries(spike);
  const usually = baseline >= LEAST_USUAL ? `usually ${formatRounded(baseline)}` : "usually none";
  if (state === "resolved") {
    const now = `${formatRounded(windowCount)} in ${windowMinutes} min`;
    if (isSettled(spike))
      return `${subject} goes on: ${now}, which is its usual rate from now on. Mark the alert, or exclude what misfires`;
    return `${subject} is back to its usual rate: ${now}, ${usually}; peak ${formatRounded(peak)}`;
  }
  const active = `${formatRounded(windowCount)} events in ${windowMinutes} min`;
  if (isCalm(spike)) {
    const calmed =
      spike.kind === "new-rule" ? "was newly active and has calmed down" : "has calmed down for now";
    return `${subject} ${calmed}, ${active}, peak ${formatRounded(peak)}`;
  }
  if (spike.kind === "new-rule") return `${subject} is newly active, ${active}`;
  const compared =
    baseline >= LEAST_USUAL
      ? `${formatRounded(windowCount / baseline)} times the usual ${formatRounded(baseline)}`
      : usually;
  return `${subject} is spiking, ${active}, ${compared}`;
}

function headlineOfIncident(spike: AlertSpike, state: AlertRecord["state"]): string {
  const zone = nameZone(spike.zoneId, spike.zoneName);
  if (spike.sources == null) return `incident in ${zone}`;
  const { title, finding, earlier } = describeIncident(spike);
  if (state === "resolved") return `${title} in ${zone}: ended; at most ${earlier}`;
  return `${title} in ${zone}: ${isCalm(spike) ? `quiet now; earlier ${earlier}` : finding}`;
}

/** `SQL injection: rule 942100 in zone 101 (shop)`. */
export function nameSeries({
  zoneId,
  zoneName,
  ruleId,
}: Pick<AlertSpike, "zoneId" | "zoneName" | "ruleId">): string {
  if (ruleId === SOURCES_RULE) return `incident in ${nameZone(zoneId, zoneName)}`;
  return `${nameRule(ruleId)} in ${nameZone(zoneId, zoneName)}`;
}
