/** Texts of attacks. Each that became markup or a script would call `tripped`, or break the content policy. */
const HOSTILE = [
  '<img src=x onerror="tripped(1)">',
  "<script>tripped(2)</script>",
  '"><svg onload=tripped(3)>',
  "javascript:tripped(4)",
  "{{constructor.constructor('tripped(5)')()}}",
  "'\"`;tripped(6)//",
  "</style><style>*{display:none!important}</style>",
  "\u202Egnp.exe\u202C \u0000\u0007\u001B[31m \u200B\u2066",
  "a".repeat(500),
  "Z\u0351\u036B\u0343\u036A\u0302".repeat(40),
] as const;

/** Members whose text decides what the page does; replacing them would test something else. */
const MEANINGFUL = new Set(
  "state severity kind coverage action next type reason circuit sessionId publicUrl keyId roles expiresAt version width".split(
    " ",
  ),
);
const IS_TIME = /^\d{4}-\d\d-\d\dT/;

/**
 * Returns the answer with every free text replaced by hostile text, and the texts of `logs` too. The first text of an
 * answer becomes the first of the hostile ones, however many members the rest of it has.
 */
export function makeHostile(value: unknown, name = "", turn = { next: -1 }): unknown {
  if (typeof value === "string") {
    if (MEANINGFUL.has(name) || IS_TIME.test(value)) return value;
    turn.next += 1;
    // Values of one list must stay different, as the API's are.
    return `${HOSTILE[turn.next % HOSTILE.length]} ${turn.next}`;
  }
  if (Array.isArray(value)) return value.map((one) => makeHostile(one, name, turn));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, makeHostile(one, key, turn)]));
}
