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

/** Returns `Who: 4 addresses of 2 networks`. */
export function toLabelled({ label, text }: Outline["verdict"][number]): string {
  return `${label}: ${text}`;
}

/**
 * Returns an outline as lines of plain text, with an empty line between its parts. The title is left out, and the links
 * stand where the caller wants them.
 */
export function toPlainLines(outline: Outline, links: readonly string[] = []): string[] {
  const { headline, verdict, facts, details, sparkline, top, members, digest, advice, commands } = outline;
  const parts = [
    verdict.map(toLabelled),
    [headline, sparkline, ...facts, ...details].filter((line) => line !== ""),
    links,
    commands.map(toLabelled),
    toMemberLines(members),
    digest,
    top.flatMap(({ label, rows }) => [`${label}:`, ...rows.map((row) => `  ${toRowLine(row)}`)]),
    advice === null ? [] : [advice.heading, ...advice.lines.map((line) => `  ${line}`)],
  ];
  return parts
    .filter((part) => part.length > 0)
    .flatMap((part, index) => (index === 0 ? part : ["", ...part]));
}
