import { escapeText } from "../../lib/escape-text.ts";
import type { FlagReader } from "../edge/flag-reader.ts";

/** The number of an alert or a silence, as an argument or as a list prints it (`#17`); 0 where it was wrong. */
export function readRowId(read: FlagReader, text: string | undefined, what: "alert" | "silence"): number {
  const digits = /^#?([1-9]\d{0,14})$/.exec(text ?? "")?.[1];
  if (digits !== undefined) return Number(digits);
  const given = text === undefined ? "the number is missing; it" : `"${escapeText(text)}"`;
  read.mistakes.push(`${given} must be the number of ${what === "alert" ? "an alert" : "a silence"}`);
  return 0;
}
