import type { Severity } from "#model/kinds.ts";
import type { AttackerKey } from "./zone.ts";

/** One message that the service would have sent: a line of `backtest --alerts`. */
export interface ReplayedMessage {
  /** Epoch minute; the end of the minute that was judged. */
  readonly at: number;
  /** The messages of one alert have one number. */
  readonly incident: number;
  readonly reason: "first" | "join" | "worse" | "late" | "resolved";
  readonly severity: Severity;
  readonly subject: "incident" | "rule" | "flip" | "silent";
  readonly attackers: readonly AttackerKey[];
  readonly rules: readonly string[];
}
