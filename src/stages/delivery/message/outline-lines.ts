import type { Outline } from "./outline-alert.ts";

/** What programs further on may take for markup or a mention, as characters that look alike and mean nothing. */
const LOOKALIKES: Readonly<Record<string, string>> = { "<": "‹", ">": "›", "&": "＆", "`": "ˋ" };

const MENTION = /@(?=[\p{L}\p{N}_])/gu;

/** Text for a receiver that hands it on to others, each with a markup of its own. */
export function toInert(text: string): string {
  return text.replace(/[<>&`]/g, (mark) => LOOKALIKES[mark] ?? mark).replace(MENTION, "@\u2060");
}

/**
 * The same for a receiver whose fields are plain text, such as PagerDuty: `&`, `<` and `>` stay, so that an address or a
 * command can be copied. `@` and the backtick mean something to the chats it hands its texts on to.
 */
export function toInertPlain(text: string): string {
  return text.replaceAll("`", LOOKALIKES["`"] ?? "").replace(MENTION, "@\u2060");
}

/** `203.0.113.7 612 (72 %)`. */
export function toRowLine({ value, count, share }: Outline["top"][number]["rows"][number]): string {
  return `${value} ${count} (${share})`;
}

/** The rules that a message speaks for, indented below their heading. */
export function toMemberLines(members: Outline["members"]): string[] {
  if (members === null) return [];
  const { heading, rows, others, more } = members;
  return [
    `${heading}:`,
    ...[...rows, ...others, ...(more === null ? [] : [more])].map((line) => `  ${line}`),
  ];
}

/** An outline as plain text, line by line, an empty line between its parts; what it links to and its title apart. */
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
