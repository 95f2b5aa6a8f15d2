import type { Call, EmulatorContext } from "../emulator-context.ts";
import { json, minimalError, type Reply } from "../reply.ts";
import type { ActionCounts } from "../rule-days.ts";
import { findZone, successBlock, unknownZoneBlock } from "./shield-zone.ts";

const OVERVIEW_DAYS = 28;

function dayKey(dayMs: number, form: "dd-MM-yyyy" | "iso"): string {
  const iso = new Date(dayMs).toISOString();
  if (form === "iso") return iso.replace(".000Z", "Z");
  return `${iso.slice(8, 10)}-${iso.slice(5, 7)}-${iso.slice(0, 4)}`;
}

function counters(counts: ActionCounts) {
  return {
    totalTriggers: counts.block + counts.log + counts.challenge,
    blockedRequests: counts.block,
    loggedRequests: counts.log,
    challengedRequests: counts.challenge,
  };
}

/**
 * Returns a rule's counters, in total and for each of the last 28 UTC days (platform API spec 4.11). A rule without
 * events has zeros.
 */
export async function ruleMetrics(context: EmulatorContext, call: Call): Promise<Reply> {
  const zone = findZone(context, call);
  if ("refusal" in zone) return minimalError(400);
  const ruleId = call.params["ruleId"] ?? "";
  if (!/^[A-Za-z0-9_-]{1,64}$/.test(ruleId)) return minimalError(400);
  if (zone.store === undefined) return json(202, { data: null, error: unknownZoneBlock() });
  const days = await context.ruleDays.count(zone.store, {
    ruleId,
    days: OVERVIEW_DAYS,
    nowMs: context.now(),
  });
  const sum = (action: keyof ActionCounts) => days.reduce((total, day) => total + day.counts[action], 0);
  const overview = days.map(({ dayMs, counts }) => [
    dayKey(dayMs, context.switches.metricDays),
    counters(counts),
  ]);
  return json(200, {
    data: {
      ...counters({ block: sum("block"), log: sum("log"), challenge: sum("challenge") }),
      overviewPastTwentyEightDays: Object.fromEntries(overview),
    },
    ...successBlock(context, "error"),
  });
}
