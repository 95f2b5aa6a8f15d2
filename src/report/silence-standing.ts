import type { SilenceRow } from "../../db/queries/silences.ts";

export type SilenceStanding = "in force" | "to come" | "over";

export function standingOf({ startsAt, expiresAt }: SilenceRow, nowMs: number): SilenceStanding {
  if (expiresAt.getTime() <= nowMs) return "over";
  return startsAt.getTime() <= nowMs ? "in force" : "to come";
}
