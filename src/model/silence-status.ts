import type { SilenceRow, SilenceStanding } from "../../db/alerting/silences.ts";

export function standingOf(
  { startsAt, expiresAt }: Pick<SilenceRow, "startsAt" | "expiresAt">,
  nowMs: number,
): SilenceStanding {
  if (expiresAt.getTime() <= nowMs) return "over";
  return startsAt.getTime() <= nowMs ? "in force" : "to come";
}
