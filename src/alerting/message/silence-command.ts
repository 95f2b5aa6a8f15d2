/** The program's name is fixed, because a message is read on any machine; the terminal prints how to call it there. */
export const LONGWATCH = "longwatch";
const MAX_RULE_CHARS = 100;

/**
 * Returns the command that silences exactly this alert's rule, to be copied into a shell. The rule's id is hostile text
 * from an event, so it is quoted. If a channel would have to change the id to show it, or if the id reads as a family
 * of rules (`942*`), the command names the alert instead.
 */
export function silenceCommand(alert: {
  readonly alertId: number;
  readonly zoneId: number;
  readonly ruleId: string;
}): string {
  const { alertId, zoneId, ruleId } = alert;
  const subject = canBeTyped(ruleId)
    ? `--zone ${zoneId} --rule=${quoteForShell(ruleId)}`
    : `--alert ${alertId}`;
  return `${LONGWATCH} silences add ${subject} --for 2h --reason 'why'`;
}

/** Printable ASCII that no channel collapses, defuses or cuts. */
function canBeTyped(ruleId: string): boolean {
  return (
    ruleId.length <= MAX_RULE_CHARS &&
    /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/.test(ruleId) &&
    !/:\/\/|www\.|mailto:|[`*<>&]/i.test(ruleId)
  );
}

/** Returns the text as one word of a POSIX shell. Inside single quotes only the quote itself has a meaning. */
function quoteForShell(text: string): string {
  return /^[\w.,:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
