import type { Command } from "commander";
import { closestName } from "../../lib/closest-name.ts";
import { escapeText } from "../../lib/escape-text.ts";

/**
 * A mistake for each of `unread`, what a command was given and cannot take; an option that is near to one it has comes with
 * that one. What follows an unknown option is its value and no mistake of its own.
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
