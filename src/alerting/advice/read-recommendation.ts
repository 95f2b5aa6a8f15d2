import { MODEL_FAILED, NO_RECOMMENDATION } from "../../model/advice-row.ts";

/** What an ask leaves in the database. */
export interface AdviceResult {
  readonly success: boolean;
  readonly text: string | null;
  readonly errorKey: string | null;
}

const MAX_TEXT_CODE_POINTS = 20_000;
/** Anything but control, format and white space: without one such character there is nothing to read. */
const VISIBLE = /[^\p{C}\p{Z}]/u;

/**
 * The platform's answer as it is stored: as received, cut to 20,000 code points, without NUL and broken surrogates,
 * which Postgres cannot hold. Nothing is escaped here; the text is hostile and every channel neutralises its own exit.
 * A text counts even where `success` is false: that flag alone is no failure (platform facts on error envelopes).
 */
export function readRecommendation(answer: {
  readonly success: boolean;
  readonly recommendation: string | null;
}): AdviceResult {
  const text = toStorable(answer.recommendation ?? "");
  if (VISIBLE.test(text)) return { success: true, text, errorKey: null };
  return { success: false, text: null, errorKey: answer.success ? NO_RECOMMENDATION : MODEL_FAILED };
}

function toStorable(received: string): string {
  const whole = received.replaceAll("\0", "").toWellFormed();
  // A code point is at most two units, so the slice holds enough of them; its broken end is beyond the cut.
  if (whole.length <= MAX_TEXT_CODE_POINTS) return whole;
  return Array.from(whole.slice(0, 2 * MAX_TEXT_CODE_POINTS))
    .slice(0, MAX_TEXT_CODE_POINTS)
    .join("");
}
