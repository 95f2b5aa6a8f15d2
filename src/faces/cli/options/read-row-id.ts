import { escapeText } from "#lib/escape-text.ts";
import type { FlagReader } from "../edge/flag-reader.ts";

/** Reads the number of an alert, a silence or a known source, with or without `#`. Returns 0 and notes a mistake if it is wrong. */
export function readRowId(
  read: FlagReader,
  text: string | undefined,
  what: "alert" | "silence" | "known source",
): number {
  const digits = /^#?([1-9]\d{0,14})$/.exec(text ?? "")?.[1];
  if (digits !== undefined) return Number(digits);
  const given = text === undefined ? "the number is missing; it" : `"${escapeText(text)}"`;
  read.mistakes.push(`${given} must be the number of ${what === "alert" ? "an" : "a"} ${what}`);
  return 0;
}

/** Reads several numbers, separated by commas or given one by one. */
export function readRowIds(
  read: FlagReader,
  texts: readonly string[],
  what: Parameters<typeof readRowId>[2],
): number[] {
  if (texts.length === 0) return [readRowId(read, undefined, what)];
  const parts = texts.flatMap((text) => text.split(",")).map((text) => text.trim());
  return [...new Set(parts.map((text) => readRowId(read, text, what)))];
}
