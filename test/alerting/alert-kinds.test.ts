import { globSync, readFileSync } from "node:fs";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { ALERT_KINDS, SPIKE_KINDS, SUBJECT_KINDS } from "#model/kinds.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";

const root = path.join(import.meta.dirname, "..", "..");
const read = (file: string) => readFileSync(path.join(root, file), "utf8");

/** Lists of names in quotes: `["a", "b"]`, `"a" | "b"`, `in ('a', 'b')`. */
const LISTS = /\[\s*["'][^\]]*\]|["'][\w-]+["'](?:\s*\|\s*["'][\w-]+["'])+|\bin \('[^)]*\)/g;

/** The lists that name kinds and cannot be made from the one source, each with the reason. */
const HAND_WRITTEN: Readonly<Record<string, string>> = {
  // The constraint is SQL text of a migration. The test below compares it.
  "db/schema/spikes.ts": "in ('spike', 'new-rule', 'sources')",
  // A rule's own episode: the source series have another detector.
  "src/stages/detection/episode.ts": '"spike" | "new-rule"',
};

test("no file of the source lists alert kinds by hand, except those named here", () => {
  const found = globSync("{src,db,jobs}/**/*.{ts,tsx}", { cwd: root })
    .filter((file) => file !== "src/model/kinds.ts")
    .flatMap((file) =>
      [...read(file).matchAll(LISTS)]
        .filter(([list]) => /["'](new-rule|sources)["']/.test(list) && /["']spike["']/.test(list))
        .map(([list]) => [file, list]),
    );
  expect(Object.fromEntries(found)).toEqual(HAND_WRITTEN);
  expect(found).toHaveLength(Object.keys(HAND_WRITTEN).length);
});

test("the database takes every kind of spike and no other", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { rows } = await database.pool.query<{ text: string }>(
    "select pg_get_constraintdef(oid) as text from pg_constraint where conname = 'spikes_kind'",
  );
  expect([...(rows[0]?.text ?? "").matchAll(/'([\w-]+)'/g)].map(([, kind]) => kind)).toEqual(SPIKE_KINDS);
});

test("docs/routing.md names every kind that a matcher takes, in the order of the source", () => {
  const line = /- `kind`: ((?:[^\n]|\n {2})+)/.exec(read("docs/routing.md"))?.[1] ?? "";
  expect([...line.matchAll(/`([\w-]+)`/g)].map(([, kind]) => kind)).toEqual(SUBJECT_KINDS);
});

test("the kinds of alerts are those that matchers take, and the group", () => {
  expect(ALERT_KINDS.filter((kind) => kind !== "group")).toEqual(SUBJECT_KINDS);
});
