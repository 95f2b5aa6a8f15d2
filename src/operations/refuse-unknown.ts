import { closestName } from "#lib/text.ts";
import { nameKnown } from "./name-known.ts";
import { Refusal } from "./refusal.ts";

/**
 * Refuses a name, which is none of those that are configured or were used before.
 * @throws {Refusal} 422 naming them, and the one that is probably meant
 */
export function refuseUnknown(
  name: string,
  names: readonly string[],
  { what, field }: { readonly what: string; readonly field: string },
): never {
  const known = [...new Set(names)].sort();
  const meant = closestName(name, known);
  const hint = meant === null ? "" : `: did you mean ${meant}?`;
  const rule = `must be a ${what} that is configured or was used before (${nameKnown(known)})${hint}`;
  throw new Refusal(422, {
    slug: `unknown-${what}`,
    mistakes: [{ field, value: JSON.stringify(name), rule }],
  });
}
