import fc from "fast-check";
import { HOUR_MS } from "#lib/units.ts";
import { NOW } from "./support.ts";

/** The dimensions that a request may name. */
const DIMENSIONS = ["feature", "ruleId", "ip", "ja4", "ua", "url", "asn", "country", "action"];

const prefix = fc.oneof(
  fc.integer({ min: 0, max: 130 }).map(String),
  fc.constantFrom("", "-1", "00", "08", "024", "0128", "8.0", "1e1", "+8", " 8", "8 ", "0x8", "24/8"),
);
const address = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4Extended(),
  fc.constantFrom(
    "::",
    "::1",
    "::ffff:203.0.113.7",
    "::203.0.113.7",
    "1:2:3:4:5:6:203.0.113.7",
    "2001:DB8::1",
  ),
  fc.constantFrom(
    "fe80::1%eth0",
    "fe80::%1",
    "fe80::1%eth0.5",
    "fe80::1%a-b",
    "203.0.113.*",
    "203.0.113",
    "010.0.0.1",
    "10.0.0.256",
    "1::2::3",
  ),
  fc.constantFrom("[::1]", "", " ", "10.0.0.0 ", "localhost", "%", "::ffff:010.0.0.1", "12345::", "٣.0.0.1"),
);
const network = fc.oneof(
  address,
  fc.tuple(address, prefix).map(([base, length]) => `${base}/${length}`),
);
const text = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom("block", "sql", "DE", "942100", "a*b", "*", "%_\\", "", " ", "É") },
  { weight: 3, arbitrary: network },
  { weight: 2, arbitrary: fc.string({ unit: "binary", maxLength: 12 }) },
  { weight: 1, arbitrary: fc.constantFrom("\0", "\ud800", "a\0b\udfff", "\ufffd", "😀", "\ud83d\ude00") },
);
const window = fc
  .tuple(fc.integer({ min: -80 * HOUR_MS, max: 4 * 60_000 }), fc.integer({ min: 1, max: 90 * HOUR_MS }))
  .map(([end, length]) => ({ from: NOW + end - length, to: NOW + end }));

const plainFilter = fc.record({
  field: fc.constantFrom(...DIMENSIONS),
  op: fc.constantFrom("eq", "in", "contains", "wildcard"),
  value: fc.array(text, { minLength: 1, maxLength: 3 }),
});
const networkFilter = fc.record({
  field: fc.constant("ip"),
  op: fc.constant("cidr"),
  value: fc.array(fc.oneof(fc.ipV4(), fc.ipV6(), fc.constant("10.0.0.0/8"), fc.constant("2001:db8::/32")), {
    minLength: 1,
    maxLength: 2,
  }),
});
const filters = fc.array(fc.oneof(plainFilter, networkFilter), { maxLength: 3 });
const optional = { requiredKeys: [] };
const number = fc.oneof(fc.integer({ min: -5, max: 600 }), fc.integer());
const questions = fc.record({ query: fc.oneof(text, fc.constant(null)), filters }, optional);
const groupings = fc.record(
  {
    groupBy: fc.array(fc.constantFrom(...DIMENSIONS), { maxLength: 4 }),
    buckets: number,
    page: number,
    pageSize: number,
  },
  optional,
);

/** A body that the spec accepts, except that the end of its window may be too old. */
const accepted = {
  search: fc.tuple(window, questions, groupings).map((parts) => Object.assign({}, ...parts) as object),
  export: fc.tuple(window, questions).map((parts) => Object.assign({}, ...parts) as object),
};

const EDGES = [
  0,
  1,
  49,
  50,
  51,
  499,
  500,
  501,
  1_000,
  1_001,
  2 ** 31 - 1,
  2 ** 31,
  2 ** 32,
  2 ** 53 - 1,
  2 ** 53,
];
const strangeNumber = fc.oneof(
  fc.constantFrom(
    ...EDGES,
    ...EDGES.map((edge) => -edge),
    2 ** 63,
    -(2 ** 63),
    -(2 ** 63) - 4_096,
    1e300,
    1.5,
    -0.5,
  ),
  fc.constantFrom(
    NOW,
    NOW - 1,
    NOW + 5 * 60_000,
    NOW + 5 * 60_000 + 1,
    NOW - 72 * HOUR_MS,
    NOW - 72 * HOUR_MS - 1,
  ),
  fc.double({ noNaN: true, noDefaultInfinity: true }),
);
const word = fc.constantFrom(
  "feature",
  "ruleId",
  "ip",
  "ja4",
  "ua",
  "url",
  "asn",
  "country",
  "action",
  "eq",
  "in",
  "contains",
  "cidr",
  "wildcard",
  "from",
  "to",
  "query",
  "filters",
  "groupBy",
  "buckets",
  "page",
  "pageSize",
  "RuleId",
  "IP",
  "From",
  "EQ",
  "Cidr",
  "message",
  "logId",
  "timestamp",
  "regex",
  "not",
  "limit",
  "value",
  "__proto__",
  "constructor",
  "toString",
  "length",
  "0",
  "$",
  "filters[0].op",
  "from ",
  "\ud800",
);
const strange = fc.oneof(
  fc.constantFrom(null, true, false, [], {}, [[]], [null], [{}], { 0: "ip" }, "0", "1793275200123", "null"),
  strangeNumber,
  word,
  text,
  fc.array(fc.oneof(word, text, strangeNumber, fc.constant(null)), { maxLength: 3 }),
  fc.dictionary(word, fc.oneof(text, strangeNumber), { maxKeys: 3 }),
  fc.record({ field: word, op: word, value: fc.oneof(text, fc.array(text, { maxLength: 2 })) }, optional),
);

interface Mutation {
  /** Which of the places of the body is changed. */
  readonly place: number;
  readonly kind: "replace" | "remove" | "add" | "rename" | "repeat" | "wrap";
  readonly value: unknown;
  readonly name: string;
}
const mutation: fc.Arbitrary<Mutation> = fc.record({
  place: fc.nat(),
  kind: fc.constantFrom("replace", "replace", "replace", "remove", "add", "rename", "repeat", "wrap"),
  value: strange,
  name: word,
});

type Container = Record<string, unknown> | unknown[];
interface Place {
  readonly container: Container;
  readonly key: string;
}

function isContainer(value: unknown): value is Container {
  return typeof value === "object" && value !== null;
}

/** Every member of every object and list inside, at any depth. */
function placesIn(container: Container): Place[] {
  return Object.entries(container).flatMap(([key, value]) => [
    { container, key },
    ...(isContainer(value) ? placesIn(value) : []),
  ]);
}

/** As JSON.parse would set it: also a member whose name is __proto__. */
function set(container: Container, key: string, value: unknown): void {
  Object.defineProperty(container, key, { value, enumerable: true, configurable: true, writable: true });
}

function remove({ container, key }: Place): void {
  if (Array.isArray(container)) container.splice(Number(key), 1);
  else delete container[key];
}

function mutate(root: Container, { place, kind, value, name }: Mutation): void {
  const places = placesIn(root);
  const chosen = places[place % places.length];
  if (chosen === undefined) return;
  const { container, key } = chosen;
  const current: unknown = Reflect.get(container, key);
  if (kind === "replace") set(container, key, value);
  else if (kind === "remove") remove(chosen);
  else if (kind === "wrap") set(container, key, [current]);
  else if (kind === "repeat" && Array.isArray(container)) container.push(current);
  else if (kind === "add") {
    if (Array.isArray(container)) container.push(value);
    else set(container, name, value);
  } else if (kind === "rename" && !Array.isArray(container)) {
    remove(chosen);
    set(container, name, current);
  }
}

function mutated(body: fc.Arbitrary<object>): fc.Arbitrary<string> {
  return fc
    .tuple(body, fc.oneof(fc.constant([]), fc.array(mutation, { minLength: 1, maxLength: 4 })))
    .map(([given, mutations]) => {
      // The root is a member too, so that the whole body can be replaced.
      const root: Container = { body: structuredClone(given) };
      for (const each of mutations) mutate(root, structuredClone(each));
      return JSON.stringify(Reflect.get(root, "body") ?? null);
    });
}

/** The JSON of a search or export body: a valid one after up to four changes at any level. */
export const requestTexts = {
  search: mutated(accepted.search),
  export: fc.oneof({ weight: 4, arbitrary: mutated(accepted.export) }, mutated(accepted.search)),
};
