/** A message is read on any machine: it names the program, and the terminal says how the program is called there. */
export const LONGWATCH = "longwatch";
const MAX_RULE_CHARS = 100;

/**
 * The command that silences exactly this alert's rule, to be copied into a shell. The rule's id is the log's text: it is
 * quoted; where a channel would have to change it to show it, or where it would read as a family of rules (`942*`), the
 * command names the alert instead.
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

/** One word for a POSIX shell: nothing inside single quotes means anything but the quote itself. */
function quoteForShell(text: string): string {
  return /^[\w.,:@%+=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
