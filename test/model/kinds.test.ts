import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { getTableConfig, PgTable } from "drizzle-orm/pg-core";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { LOG_LEVELS } from "#lib/log.ts";
import { COLUMN_NAMES, FIELD_NAMES } from "#model/fields.ts";
import { WIDTH_SECONDS } from "#model/horizon.ts";
import * as kinds from "#model/kinds.ts";
import { URL_PARTS } from "#model/record-parts.ts";
import { ROLE_SCOPES } from "#model/roles.ts";
import { DIMENSIONS as PLATFORM_DIMENSIONS } from "#platform/contract/event-logs.ts";
import { QUEUES } from "#store/queue/define-job.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { startArchive } from "../faces/http/start-archive.ts";

const ROOT = path.join(import.meta.dirname, "..", "..");
const read = (file: string) => readFileSync(path.join(ROOT, file), "utf8");

/** The platform's contract and its emulator know nothing of Longwatch. */
const NOT_OURS = /^src\/(?:platform|emulator)\//;

type List = readonly (string | number)[];

/** Every closed list by its name. Two stand beside what they belong to: the fields' names, and the levels of the log. */
const TUPLES: ReadonlyMap<string, List> = new Map<string, List>(
  Object.entries({ ...kinds, FIELD_NAMES, LOG_LEVELS }).flatMap(([name, value]) =>
    Array.isArray(value) ? [[name, value as List]] : [],
  ),
);

/** Returns the first tuple with exactly these members in this order; the list itself if there is none. */
function nameOf(list: List): string {
  const same = ([, tuple]: [string, List]) => JSON.stringify(tuple) === JSON.stringify(list);
  return [...TUPLES].find(same)?.[0] ?? JSON.stringify(list);
}

test("lists that belong together agree, also those that the contract and the queue must write anew", () => {
  expect(PLATFORM_DIMENSIONS).toEqual(kinds.DIMENSIONS);
  expect(QUEUES).toEqual(kinds.WORKER_ROLES);
  expect(kinds.ALERT_KINDS.filter((kind) => kind !== "group")).toEqual(kinds.MESSAGE_KINDS);
  expect(Object.keys(WIDTH_SECONDS)).toEqual(kinds.WIDTH_NAMES);
  expect(Object.values(WIDTH_SECONDS)).toEqual(kinds.BUCKET_WIDTHS);
  expect(kinds.ROLES.map((role) => ROLE_SCOPES[role])).toEqual(
    kinds.SCOPES.map((_, last) => kinds.SCOPES.slice(0, last + 1)),
  );
  expect(FIELD_NAMES).toEqual(expect.arrayContaining([...URL_PARTS]));
});

interface Node {
  readonly [name: string]: unknown;
}

/** Lists of one schema only, with the reason why no other place writes them. */
const OF_ONE_SCHEMA: ReadonlyMap<string, string> = new Map([
  [JSON.stringify(COLUMN_NAMES), "the columns of a search and an export: the fields and others"],
  [JSON.stringify([...FIELD_NAMES, "message"]), "the values of an event that a later look may change"],
  [JSON.stringify([...kinds.ALERT_STATES, "all"]), "the filter of alerts, where all is every state"],
  [JSON.stringify([...kinds.SILENCE_STATES, "all"]), "the filter of silences, where all is every state"],
  ['["done","unchanged"]', "the results of marking an alert"],
  ['["log id","request id","path"]', "what find has found an event by"],
  ['["revoked","over"]', "the results of revoking a key"],
  ['["true","false"]', "a flag in an address or in the environment"],
  ['["open","closed"]', "the filter of spikes; a spike is open while its end is null"],
  ['["waiting","running","done","failed"]', "the state of a run, which the route makes from its times"],
  ['["overview","explorer","alerts","rules","coverage"]', "the pages that a saved view may be of"],
  ['["starttls","implicit","none"]', "a setting of the email channel"],
  ['["tls","tcp"]', "a setting of the syslog destination"],
  ['["plain","scram-sha-256","scram-sha-512"]', "a setting of the kafka destination"],
  ['["rules","addresses","values"]', "what a message counts instead of events"],
  ['["asn","country","path","rule","ja4"]', "the dimensions in which a zone's sources grow"],
  ['["inhibition","incident","few-addresses","group"]', "the mutes that are not a silence"],
]);

/** Returns the closed lists in a JSON schema: enumerations, and the constants that tell the branches of a union apart. */
function* listsIn(node: unknown): Generator<List> {
  if (typeof node !== "object" || node === null) return;
  const { enum: values, anyOf, oneOf } = node as Node;
  if (Array.isArray(values)) yield values as List;
  const branches = (anyOf ?? oneOf) as readonly Node[] | undefined;
  if (branches !== undefined) {
    const constants = branches.flatMap(({ const: own, properties }) => {
      const kind = (properties as { readonly kind?: Node } | undefined)?.kind?.["const"];
      return [own ?? kind].filter((value) => value !== undefined);
    });
    if (constants.length === branches.length && constants.length > 1) yield constants as unknown as List;
  }
  for (const part of Object.values(node)) yield* listsIn(part);
}

function listsOf(schema: unknown): List[] {
  if (schema instanceof z.ZodType)
    return (["input", "output"] as const).flatMap((io) => [
      ...listsIn(z.toJSONSchema(schema, { io, unrepresentable: "any" })),
    ]);
  return typeof schema === "object" && schema !== null ? Object.values(schema).flatMap(listsOf) : [];
}

/** Fails on lists that no tuple has, and that no other reason allows. */
function expectTuples(found: Iterable<readonly [where: string, list: List]>): void {
  const unknown = [...found]
    .map(([where, list]) => [where, nameOf(list)])
    .filter(([, name]) => name?.startsWith("[") === true && !OF_ONE_SCHEMA.has(name));
  expect(unknown).toEqual([]);
}

test("every list in a schema of a route is a tuple", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const found: [string, List][] = [];
  const { url } = await startArchive(database.url, {
    routes: [
      (app) =>
        app.addHook("onRoute", ({ method, url: route, schema }) => {
          for (const list of listsOf(schema)) found.push([`${[method].flat().join()} ${route}`, list]);
        }),
    ],
  });
  // Also the routes of the session and of the probes.
  for (const list of listsIn(await (await fetch(`${url}/openapi.json`)).json()))
    found.push(["/openapi.json", list]);
  expect(found.length).toBeGreaterThan(100);
  expectTuples(found);
});

test("every list in a schema that a module exports is a tuple", async () => {
  const files = globSync("src/**/*.ts", { cwd: ROOT }).filter(
    (file) => !NOT_OURS.test(file) && !file.includes("/console/") && read(file).includes('from "zod"'),
  );
  const found: [string, List][] = [];
  for (const file of files) {
    const exported = (await import(path.join(ROOT, file))) as Node;
    for (const value of Object.values(exported))
      if (value instanceof z.ZodType) for (const list of listsOf(value)) found.push([file, list]);
  }
  expect(new Set(found.map(([file]) => file)).size).toBeGreaterThan(10);
  expectTuples(found);
});

/** A list in a check constraint as Postgres writes it: `(kind = ANY (ARRAY['a'::text, 'b'::text]))`, or numbers. */
const CHECKED = /\((\w+) = ANY \(ARRAY\[([^\]]*)\]\)\)/g;

test("every list in a check constraint of the database is a tuple, and that of its column", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { rows } = await database.pool.query<{ name: string; table: string; text: string }>(
    `select conname as name, conrelid::regclass::text as "table", pg_get_constraintdef(oid) as text
      from pg_constraint where contype = 'c' and connamespace = 'public'::regnamespace and conparentid = 0`,
  );
  const lists = rows.flatMap(({ table, name, text }) =>
    [...text.matchAll(CHECKED)].map(([, column, all = ""]) => ({
      name,
      column: `${table}.${column}`,
      list: [...all.matchAll(/'([^']*)'|\d+/g)].map(([number, word]) => word ?? Number(number)),
    })),
  );
  const named = new Set(lists.map(({ name }) => name));
  expect(rows.filter(({ name, text }) => text.includes(" ANY (") && !named.has(name))).toEqual([]);
  expectTuples(lists.map(({ name, list }) => [name, list]));

  const checked = new Map(lists.map(({ column, list }) => [column, nameOf(list)]));
  const typed: [string, string][] = [];
  for (const file of globSync("db/schema/*.ts", { cwd: ROOT })) {
    for (const table of Object.values((await import(path.join(ROOT, file))) as Node)) {
      if (!(table instanceof PgTable)) continue;
      const { name, columns } = getTableConfig(table);
      for (const { name: column, enumValues } of columns)
        if (enumValues !== undefined && enumValues.length > 0)
          typed.push([
            `${name}.${column.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)}`,
            nameOf(enumValues),
          ]);
    }
  }
  expect(typed.length).toBeGreaterThan(15);
  for (const [column, name] of typed) expect([column, checked.get(column)]).toEqual([column, name]);
});

/** The lists in code that have at least three words of a tuple, or are one, and cannot be made from it. */
const WRITTEN_ANEW: ReadonlyMap<string, string> = new Map([
  ["define-job.ts", "queue imports no model; the first test compares it"],
  ["hour-status.ts", "every status, the worst first"],
  ["requests.ts", "what was done with a request, the gravest first"],
  ["verdict-effects.ts", "the numbers that say whether something is new in the zone"],
  ["rules.tsx", "the columns of counts; a rule without any other action shows no more"],
  ["zoom-cells.ts", "the statuses of an hour, by how much attention they need"],
  ["words.ts", "the reasons of messages that go on with an alert"],
  ["hour-contents.ts", "the dimensions that verify compares"],
  ["event-rows.ts", "the columns of an event that a look fills"],
  ["queries.ts", "the groups that the overview compares"],
  ["judge-verdict.ts", "the numbers of a verdict that are no reasons for it"],
  ["classify-requests.ts", "the texts of a request that a finding may name"],
  ["request-findings.ts", "the kinds of spikes that a person is notified of as an attack"],
  ["replay-events.ts", "the dimensions of an entry that the backtest reads"],
  ["classify-requests.ts", "the columns of an event that its class depends on"],
  ["request-findings.ts", "the kinds of spikes that say whose requests are"],
]);

/** `["a", "b"]`, `[{ value: "a" }, { value: "b" }]`, `"a" | "b"` and `in ('a', 'b')`. */
const WRITTEN =
  /\[\s*(?:"[^"\n]*"\s*,?\s*)+\]|\[\s*\{\s*value:\s*"[^\]]*\]|"[\w -]+"(?:\s*\|\s*"[\w -]+")+|\bin \((?:\s*'[^']*',?)+\)/g;

test("no source file writes a list of kinds by hand, except those named here", () => {
  const words = [...TUPLES].flatMap(([name, tuple]) =>
    typeof tuple[0] === "string" && name !== "LOG_LEVELS" ? [tuple] : [],
  );
  const found = globSync("{src,db,jobs}/**/*.{ts,tsx}", { cwd: ROOT })
    .filter((file) => !/^src\/model\/(?:review-)?kinds\.ts$/.test(file) && !NOT_OURS.test(file))
    .flatMap((file) =>
      [
        ...read(file)
          .replaceAll(/\b(?:Pick|Omit|Exclude)<[^>]*>/g, "")
          .matchAll(WRITTEN),
      ].flatMap(([text]) => {
        const pattern = text.includes("value:") ? /value:\s*"([^"]*)"/g : /["']([^"']*)["']/g;
        const list = [...text.matchAll(pattern)].map(([, word = ""]) => word);
        const isCopy = (tuple: List) =>
          list.every((word) => tuple.includes(word)) && (list.length >= 3 || list.length === tuple.length);
        return list.length > 1 && words.some(isCopy) ? [path.basename(file)] : [];
      }),
    );
  expect(found.sort()).toEqual([...WRITTEN_ANEW.keys()].sort());
});

/** The choices of the console that no closed list has, by file and label. */
const OWN_CHOICES: ReadonlyMap<string, string> = new Map([
  ["header.tsx: Zone", "the zones of the service"],
  ["runs.tsx: Zone", "the zones of the service"],
  ["routing-test.tsx: Zone", "the zones of the service"],
  ["header.tsx: Span that ends now", "lengths of time"],
  ["silences.tsx: Zone", "the zones of the service"],
  ["silence-dialog.tsx: For how long", "lengths of time"],
  ["silence-dialog.tsx: What is silenced", "the silences that the alert has"],
  ["alerts.tsx: State", "a choice may be of two states"],
  ["filter-bar.tsx: Kind of filter", "an operator and whether it is negated"],
]);

test("every select box and filter of the console offers a whole tuple, except those named here", () => {
  const offered = new Map<string, string>();
  for (const file of globSync("src/**/*.tsx", { cwd: ROOT })) {
    const text = read(file);
    const boxes = [...text.matchAll(/<(?:Select|MultiSelect|NativeSelect|SegmentedControl|Choices)\b/g)];
    for (const { index } of boxes) {
      const [, label] = /\blabel="([^"]+)"/.exec(text.slice(index)) ?? [];
      const data = /\b(?:data|names)=\{/.exec(text.slice(index));
      expect([file, label, data === null]).toEqual([file, expect.any(String), false]);
      const from = index + (data?.index ?? 0) + (data?.[0].length ?? 0);
      let depth = 1;
      let end = from;
      for (; depth > 0; end += 1) depth += { "{": 1, "}": -1 }[text[end] ?? ""] ?? 0;
      offered.set(`${path.basename(file)}: ${label}`, text.slice(from, end - 1));
    }
  }
  expect(offered.size).toBeGreaterThan(12);
  const wrong = [...offered].filter(([where, data]) => {
    const isWhole = [...TUPLES.keys()].some((name) => new RegExp(`^(?:\\[\\.{3})?${name}\\b`).test(data));
    const isOwn = OWN_CHOICES.has(where);
    return isOwn === (isWhole && !/\.(?:filter|slice)\(/.test(data));
  });
  expect(wrong).toEqual([]);
});

test("docs/routing.md names every kind that a matcher takes, in the order of the source", () => {
  const line = /- `kind`: ((?:[^\n]|\n {2})+)/.exec(read("docs/routing.md"))?.[1] ?? "";
  expect([...line.matchAll(/`([\w-]+)`/g)].map(([, kind]) => kind)).toEqual(kinds.SUBJECT_KINDS);
});
