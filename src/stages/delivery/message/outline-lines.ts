import type { Outline } from "./outline-alert.ts";

/** Similar characters without a meaning, for those that later programs may read as markup or a mention. */
const LOOKALIKES: Readonly<Record<string, string>> = { "<": "‹", ">": "›", "&": "＆", "`": "ˋ" };

const MENTION = /@(?=[\p{L}\p{N}_])/gu;

/** Makes text harmless for a receiver that forwards it to programs with a markup of their own. */
export function toInert(text: string): string {
  return text.replace(/[<>&`]/g, (mark) => LOOKALIKES[mark] ?? mark).replace(MENTION, "@\u2060");
}

/**
 * Makes text harmless for a receiver with plain text fields, such as PagerDuty. `&`, `<` and `>` stay, so that an
 * address or a command can be copied. `@` and the backtick are replaced, because they have a meaning in the chats to
 * which the receiver forwards.
 */
export function toInertPlain(text: string): string {
  return text.replaceAll("`", LOOKALIKES["`"] ?? "").replace(MENTION, "@\u2060");
}

/** Returns `203.0.113.7 612 (72 %)`. */
export function toRowLine({ value, count, share }: Outline["top"][number]["rows"][number]): string {
  return `${value} ${count} (${share})`;
}

/** Returns the members of a group, indented below their heading. */
export function toMemberLines(members: Outline["members"]): string[] {
  if (members === null) return [];
  const { heading, rows, others, more } = members;
  return [
    `${heading}:`,
    ...[...rows, ...others, ...(more === null ? [] : [more])].map((line) => `  ${line}`),
  ];
}

/** Returns an outline as lines of plain text, with an empty line between its parts. Title and links are left out. */
export function toPlainLines(outline: Outline): string[] {
  const { headline, facts, details, sparkline, top, members, digest, advice, silence } = outline;
  const parts = [
    [headline, sparkline, ...facts, ...details].filter((line) => line !== ""),
    toMemberLines(members),
    digest,
    top.flatMap(({ label, rows }) => [`${label}:`, ...rows.map((row) => `  ${toRowLine(row)}`)]),
    advice === null ? [] : [advice.heading, ...advice.lines.map((line) => `  ${line}`)],
    silence === null ? [] : [`Silence: ${silence}`],
  ];
  return parts
    .filter((part) => part.length > 0)
    .flatMap((part, index) => (index === 0 ? part : ["", ...part]));
}
