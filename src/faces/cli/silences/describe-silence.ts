import { toLine } from "#lib/plain-text.ts";
import { Matchers } from "#stages/alerting/silence.ts";

/** Returns the matchers in words, such as `zone 101 and rule 942100 or 941*`. */
export function describeMatchers(stored: unknown): string {
  const matchers = Matchers.safeParse(stored);
  if (!matchers.success) return "(mutes nothing: its matchers cannot be read)";
  return Object.entries(matchers.data)
    .map(
      ([name, values]) => `${name} ${(values ?? []).map((value) => toLine(String(value), 60)).join(" or ")}`,
    )
    .join(" and ");
}
