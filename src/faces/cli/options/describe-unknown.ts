import type { Command } from "commander";
import { closestName, escapeText } from "#lib/text.ts";

/**
 * Returns a mistake for each argument and option in `unread`, which the command does not know. A misspelt option comes
 * with the option that is probably meant. The value of an unknown option is not reported as another mistake.
 */
export function describeUnknown(command: Command, unread: readonly string[]): string[] {
  const known = [...command.options.flatMap(({ long }) => long ?? []), "--help"];
  return unread.flatMap((text, index) => {
    const before = unread[index - 1];
    if (!isOption(text) && before !== undefined && isOption(before) && !before.includes("=")) return [];
    const meant = isOption(text) ? closestName(text.replace(/=.*$/s, ""), known) : null;
    const hint = meant === null ? "" : `: did you mean ${meant}?`;
    return [`"${escapeText(text)}" is not an argument or option of this command${hint}`];
  });
}

function isOption(text: string): boolean {
  return /^--?\D/.test(text);
}
