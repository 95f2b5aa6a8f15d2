export type SilenceStatus = "in force" | "to come" | "over";

export function silenceStatus(
  { startsAt, expiresAt }: { readonly startsAt: Date; readonly expiresAt: Date },
  nowMs: number,
): SilenceStatus {
  if (expiresAt.getTime() <= nowMs) return "over";
  return startsAt.getTime() <= nowMs ? "in force" : "to come";
}
