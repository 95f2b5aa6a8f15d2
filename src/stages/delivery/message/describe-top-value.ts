import { cutText, toLine } from "#lib/text.ts";
import type { AlertMessage } from "#model/alert-message.ts";

const MAX_CHARS = 300;
/** A shorter text is cut only at its end, because two short halves would not be readable. */
const LEAST_FOR_HALVES = 24;
const TAIL_SHARE = 0.6;

/** Returns a value that caused events as one harmless line of at most `maxChars` code points. */
export function describeTopValue(key: keyof AlertMessage["top"], value: string, maxChars: number): string {
  const line = toLine(value, MAX_CHARS);
  if (key === "userAgents") return line === "" ? cutText("(none sent)", maxChars) : cutMiddle(line, maxChars);
  const named = key === "asns" && /^\d{1,10}$/.test(line) ? `AS${line}` : line;
  return cutText(named || "-", maxChars);
}

/** Cuts the middle, because the names of browsers begin alike and differ at the end. */
function cutMiddle(text: string, maxChars: number): string {
  const characters = Array.from(text);
  if (characters.length <= maxChars || maxChars < LEAST_FOR_HALVES) return cutText(text, maxChars);
  const tail = Math.ceil((maxChars - 1) * TAIL_SHARE);
  return `${characters.slice(0, maxChars - 1 - tail).join("")}…${characters.slice(-tail).join("")}`;
}
