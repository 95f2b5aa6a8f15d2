import { MODEL_FAILED, NO_RECOMMENDATION } from "#model/advice.ts";

/** The result of an ask, as the database stores it. */
export interface AdviceResult {
  readonly success: boolean;
  readonly text: string | null;
  readonly errorKey: string | null;
}

const MAX_TEXT_CODE_POINTS = 20_000;
/** Matches any character except control, format and white space characters; a text without one is empty. */
const VISIBLE = /[^\p{C}\p{Z}]/u;

/**
 * Returns the platform's answer as it is stored: cut to 20,000 code points, without NUL and broken surrogates, which
 * Postgres cannot store. Nothing is escaped here: the text is hostile, and every channel escapes it for its own format.
 * A text counts even if `success` is false, because that flag alone is no failure (platform facts on error envelopes).
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
