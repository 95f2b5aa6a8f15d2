import type { Mistakes, Search } from "../query/search.ts";

/** Matches an address or the beginning of one, which could only find events of that address. */
const ADDRESS_LIKE = /^(?=.*[.:])[0-9a-f.:]+$/i;

/**
 * Returns which parts of a search are forbidden for a key that sees addresses only masked, because the answer would
 * reveal the hidden part: filters and groups by `ip`, and free text that is only a piece of an address. Returns null
 * when nothing is forbidden.
 */
export function refuseHidden({ filters, groupBy, query }: Search): Mistakes | null {
  const mistakes: Mistakes = {};
  const rule = "this key sees addresses only masked";
  for (const [index, { field }] of filters.entries()) {
    if (field === "ip") mistakes[`filters[${index}].field`] = [`The value "ip" is not valid: ${rule}.`];
  }
  const at = groupBy.indexOf("ip");
  if (at >= 0) mistakes[`groupBy[${at}]`] = [`The value "ip" is not valid: ${rule}.`];
  if (ADDRESS_LIKE.test(query)) mistakes["query"] = [`An address is not valid here: ${rule}.`];
  return Object.keys(mistakes).length > 0 ? mistakes : null;
}
