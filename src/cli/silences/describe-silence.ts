import { type SilenceRow } from "../../../db/queries/silences.ts";
import { Matchers } from "../../alert/silence.ts";
import { toLine } from "../../channel/plain-text.ts";
import { standingOf } from "../../report/silence-standing.ts";
import { showTime } from "../read-span.ts";

/** One line; reason, name and rules are what somebody wrote. */
export function describeSilence(silence: SilenceRow, nowMs: number): string {
  const { id, startsAt, expiresAt, createdBy, reason } = silence;
  const span = `${showTime(startsAt.getTime())} to ${showTime(expiresAt.getTime())} UTC`;
  const what = describeMatchers(silence.matchers);
  return `#${id}  ${standingOf(silence, nowMs)}  ${span}  ${what}  by ${toLine(createdBy, 100)}: ${toLine(reason, 200)}\n`;
}

/** `zone 101 and rule 942100 or 941*`. */
export function describeMatchers(stored: unknown): string {
  const matchers = Matchers.safeParse(stored);
  if (!matchers.success) return "(holds back nothing: its matchers cannot be read)";
  return Object.entries(matchers.data)
    .map(
      ([name, values]) => `${name} ${(values ?? []).map((value) => toLine(String(value), 60)).join(" or ")}`,
    )
    .join(" and ");
}
