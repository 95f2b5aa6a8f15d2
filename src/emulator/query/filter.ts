import ipaddr from "ipaddr.js";
import type { ColumnName, Columns } from "../columns.ts";
import type { Filter, Search } from "./request.ts";

/** The columns that free text searches. */
const QUERY_COLUMNS: readonly ColumnName[] = ["ip", "ruleId", "url", "ua", "message"];

/**
 * Returns whether a text matches. `*` matches any run of characters, even none. Linear in practice, so no pattern can
 * block the emulator.
 */
function matchesWildcard(pattern: string, text: string): boolean {
  const [head = "", ...rest] = pattern.toLowerCase().split("*");
  const lower = text.toLowerCase();
  const tail = rest.pop();
  if (tail === undefined) return lower === head;
  if (!lower.startsWith(head) || lower.length < head.length + tail.length || !lower.endsWith(tail))
    return false;
  let position = head.length;
  for (const part of rest) {
    const found = lower.indexOf(part, position);
    if (found < 0) return false;
    position = found + part.length;
  }
  return position <= lower.length - tail.length;
}

/** Returns whether an address is in a network. An address without a prefix length is a network of its own. */
function isInNetwork(ip: string, cidr: string): boolean {
  if (!ipaddr.isValid(ip)) return false;
  const address = ipaddr.parse(ip);
  const whole = address.kind() === "ipv4" ? 32 : 128;
  const [network, bits] = cidr.includes("/")
    ? ipaddr.parseCIDR(cidr)
    : ([ipaddr.parse(cidr), whole] as const);
  return address.kind() === network.kind() && address.match(network, bits);
}

const MATCHES: Record<Filter["op"], (value: string, text: string) => boolean> = {
  eq: (value, text) => text === value,
  in: (value, text) => text === value,
  contains: (value, text) => text.toLowerCase().includes(value.toLowerCase()),
  cidr: (value, text) => isInNetwork(text, value),
  wildcard: matchesWildcard,
};

/**
 * Returns whether a text passes the filter. `eq` and `in` compare exactly; `contains` and `wildcard` ignore case. One
 * of several values is enough.
 */
function matchesFilter(filter: Filter, text: string): boolean {
  return filter.value.some((value) => MATCHES[filter.op](value, text));
}

/** Tests each distinct text of a column once. */
function perText(
  columns: Columns,
  name: ColumnName,
  matches: (text: string) => boolean,
): (row: number) => boolean {
  const dictionary = columns.dictionaryOf(name);
  const codes = columns.codesOf(name);
  const answers = new Map<number, boolean>();
  return (row) => {
    const code = codes[row] ?? 0;
    const known = answers.get(code);
    if (known !== undefined) return known;
    const answer = matches(dictionary.textOf(code));
    answers.set(code, answer);
    return answer;
  };
}

/** Returns the test for rows. Filters and the free text are combined with AND. */
export function createMatcher(
  columns: Columns,
  search: Pick<Search, "filters" | "query">,
): (row: number) => boolean {
  const tests = search.filters.map((filter) =>
    perText(columns, filter.field, (text) => matchesFilter(filter, text)),
  );
  if (search.query !== "") {
    const wanted = search.query.toLowerCase();
    const anywhere = QUERY_COLUMNS.map((name) =>
      perText(columns, name, (text) => text.toLowerCase().includes(wanted)),
    );
    tests.push((row) => anywhere.some((test) => test(row)));
  }
  return (row) => tests.every((test) => test(row));
}
