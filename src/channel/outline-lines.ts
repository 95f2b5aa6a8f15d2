import type { Outline } from "./outline-alert.ts";

/** What programs further on may take for markup or a mention, as characters that look alike and mean nothing. */
const LOOKALIKES: Readonly<Record<string, string>> = { "<": "‹", ">": "›", "&": "＆", "`": "ˋ" };

/** Text for a receiver that hands it on to others, each with a markup of its own. */
export function toInert(text: string): string {
  return text
    .replace(/[<>&`]/g, (mark) => LOOKALIKES[mark] ?? mark)
    .replace(/@(?=[\p{L}\p{N}_])/gu, "@\u2060");
}

/** `203.0.113.7 612 (72 %)`. */
export function toRowLine({ value, count, share }: Outline["top"][number]["rows"][number]): string {
  return `${value} ${count} (${share})`;
}
