import { readFileSync } from "node:fs";
import path from "node:path";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { configFile, toJsonSchema } from "#config/file/config-file-schema.ts";
import { destinationSettings, forwardFields } from "#config/file/entry-fields.ts";

const readDoc = (name: string) => readFileSync(path.join(import.meta.dirname, "../../docs", name), "utf8");
const forwarding = readDoc("forwarding.md");

/** Pages that describe a part of the file besides routing.md. */
const PAGES: Readonly<Record<string, readonly string[]>> = {
  accounts: ["scaling.md"],
  channels: ["channels.md"],
  forward: ["forwarding.md"],
  detection: ["detection.md"],
  sign_in: ["sign-in.md"],
  actions: ["configuration.md"],
  schedule: ["configuration.md"],
};
/** Names of another spelling of a setting that a page names, and the reference to the schema. */
const UNNAMED = /^\$schema$|_env$/;

type JsonSchema = { readonly [member: string]: unknown };

/** Returns the names of the settings below a schema, whatever kind of entry they belong to. */
function listNames(schema: unknown): string[] {
  if (typeof schema !== "object" || schema === null) return [];
  const { properties = {}, ...rest } = schema as JsonSchema;
  return [
    ...Object.entries(properties as JsonSchema).flatMap(([name, below]) => [name, ...listNames(below)]),
    ...Object.entries(rest).flatMap(([name, below]) => (name === "$defs" ? [] : listNames(below))),
  ];
}

test("every setting of the configuration file is named on the page of its part", () => {
  const { properties, $defs = {} } = toJsonSchema() as { properties: JsonSchema; $defs?: JsonSchema };
  const missing = Object.entries({ ...properties, ...$defs }).flatMap(([part, schema]) => {
    const text = ["routing.md", ...(PAGES[part] ?? [])].map(readDoc).join("\n");
    return [...(part in properties ? [part] : []), ...listNames(schema)]
      .filter((name) => !UNNAMED.test(name) && !new RegExp(`(?<![\\w-])${name}(?![\\w-])`).test(text))
      .map((name) => `${part}: ${name}`);
  });
  expect([...new Set(missing)]).toEqual([]);
});

test("docs/forwarding.md names exactly the settings of each kind, and each that a kind needs", () => {
  const inCommon = Object.keys(destinationSettings.shape);
  const toKeys = (cell = "") =>
    [...cell.matchAll(/`(\w+)`/g)].map(([, key = ""]) => key).toSorted((a, b) => a.localeCompare(b));
  const rows = [...forwarding.matchAll(/^\| `([\w-]+)` \|([^|]*)\|([^|]*)\|[^|]*\|[^|]*\|$/gm)];
  expect(rows.map(([, kind]) => kind)).toEqual([...forwardFields.keys()]);
  for (const [, kind = "", needed, optional] of rows) {
    const own = (forwardFields.get(kind) ?? []).filter(
      ({ name }) => !inCommon.includes(name) && name !== "allowPrivateNetworks" && name !== "caFile",
    );
    const keysOf = (isRequired: boolean) =>
      own
        .filter((field) => field.isRequired === isRequired)
        .map(({ key, secret }) => (secret === "no" ? key : `${key}_file`))
        .sort();
    expect([kind, toKeys(needed), toKeys(optional)]).toEqual([kind, keysOf(true), keysOf(false)]);
  }
});

test("the examples of docs/forwarding.md are right", () => {
  const examples = [...forwarding.matchAll(/```yaml\n([\s\S]*?)```/g)].map(([, yaml = ""]) => parse(yaml));
  expect(examples.length).toBeGreaterThan(0);
  for (const example of examples) expect(configFile.safeParse(example).error?.issues ?? []).toEqual([]);
});
