/** A regular expression for `isSumRule`, which Postgres reads as JavaScript does. */
export const SUM_RULES = "^(?:901340|949[0-9]{3}|959[0-9]{3}|980[0-9]{3})$";
const SUM_RULE = new RegExp(SUM_RULES);

/** Rules of the core rule set that only compare a sum of other rules' scores with a limit, or report that sum. */
export function isSumRule(ruleId: string): boolean {
  return SUM_RULE.test(ruleId);
}

/** Rules of the core rule set that read the site's answer: data leaks, error texts and web shells (950 to 956). */
export function isResponseRule(ruleId: string): boolean {
  return /^95[0-6]\d{3}$/.test(ruleId);
}
