/** Splits `The value 5 is not valid: to must be after from.` into its parts. */
export function splitMistake(
  field: string,
  text: string,
): { readonly field: string; readonly value?: string; readonly rule: string } {
  const middle = ` is not valid: ${field} `;
  const at = text.lastIndexOf(middle);
  if (at < 0) return { field, rule: text };
  return { field, value: text.slice("The value ".length, at), rule: text.slice(at + middle.length, -1) };
}
