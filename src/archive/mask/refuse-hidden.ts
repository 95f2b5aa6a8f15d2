import type { Mistakes, Search } from "../query/search.ts";

/** An address or the beginning of one, which only events of that address would be found by. */
const ADDRESS_LIKE = /^(?=.*[.:])[0-9a-f.:]+$/i;

/**
 * What a key that sees addresses only masked may not ask, because the answer would tell the rest of one: filters and groups
 * by `ip`, and free text that is nothing but a piece of an address. Null when nothing is wrong.
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
