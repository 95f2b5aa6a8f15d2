import type { Matchers } from "../silence.ts";
import type { SilenceChoice } from "./silence-choices.ts";

/** The program's name is fixed, because a message is read on any machine; the terminal prints how to call it there. */
export const LONGWATCH = "longwatch";
const MAX_VALUE_CHARS = 100;
const MAX_OPTIONS = 8;

/**
 * Returns the command that makes the first of the choices, to be copied into a shell. Values of events are hostile text,
 * so they are quoted. If a channel would have to change a value to show it, the command names the alert instead; null if no
 * alert can stand for it.
 */
export function silenceCommand(alertId: number | null, [choice]: readonly SilenceChoice[]): string | null {
  if (choice === undefined) return null;
  const subject =
    toOptions(choice.matchers) ?? (alertId === null ? null : `--alert ${alertId} --scope ${choice.scope}`);
  if (subject === null) return null;
  return `${LONGWATCH} silences add ${subject} --for ${choice.scope === "zone" ? "30m" : "2h"} --reason 'why'`;
}

/** Returns the matchers as options of `silences add`; null if a value cannot be shown unchanged. */
function toOptions(matchers: Matchers): string | null {
  const options: string[] = [];
  for (const [name, values = []] of Object.entries(matchers))
    for (const value of values.map(String)) {
      if (!canBeTyped(value)) return null;
      options.push(`--${name}${name === "zone" || name === "kind" ? " " : "="}${quoteForShell(value)}`);
    }
  return options.length > MAX_OPTIONS ? null : options.join(" ");
}

/** Printable ASCII that no channel collapses, defuses or cuts. */
export function canBeTyped(value: string): boolean {
  return (
    value.length <= MAX_VALUE_CHARS &&
    /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/.test(value) &&
    !/:\/\/|www\.|mailto:|[`*<>&]/i.test(value)
  );
}

/** Returns the text as one word of a POSIX shell. Inside single quotes only the quote itself has a meaning. */
export function quoteForShell(text: string): string {
  return /^[\w.,:@%+=/-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
