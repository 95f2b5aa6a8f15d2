import { sql } from "drizzle-orm";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CLASS_COUNTS, VERB } from "#db/detection/roll-up.ts";
import { classifyAction, createActionStates } from "#model/action-class.ts";
import type { ActionClass } from "#model/kinds.ts";
import { createMigratedDatabase, type MigratedDatabase } from "../../db/migrated-database.ts";

let database: MigratedDatabase;
beforeAll(async () => {
  database = await createMigratedDatabase();
});
afterAll(() => database.drop());

test.each([
  ["block", "blocked"],
  ["Blocked", "blocked"],
  ["LOG", "logged"],
  ["Logged", "logged"],
  ["challenge", "challenged"],
  ["Challenged", "challenged"],
  ["allow", "other"],
  ["bypass", "other"],
  ["blocking", "other"],
  [" block", "other"],
  ["bloc\u212a", "other"],
  ["", "other"],
  [null, "other"],
] as const)("the action %j is counted as %s", (action, expected) => {
  expect(classifyAction(action)).toBe(expected);
});

const words = [
  "block",
  "blocked",
  "log",
  "logged",
  "challenge",
  "challenged",
  "allow",
  "bl\u00f6ck",
  "b\u0130ock",
];
const someCase = fc
  .tuple(fc.constantFrom(...words), fc.array(fc.boolean(), { minLength: 10, maxLength: 10 }))
  .map(([word, upper]) =>
    Array.from(word, (letter, i) => (upper[i] === true ? letter.toUpperCase() : letter)).join(""),
  );
const actions = fc.oneof(
  someCase,
  fc.constant(null),
  fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0") && text.isWellFormed()),
);

test("the roll-up's SQL classes every action as the function does", async () => {
  const property = fc.asyncProperty(fc.array(actions, { minLength: 1, maxLength: 50 }), async (given) => {
    const counted = await database.db.execute<Record<ActionClass | "total", number>>(sql`
      select ${CLASS_COUNTS} from (select ${VERB} as verb from unnest(${sql.param(given)}::text[]) as e(action)) e`);
    const classes = given.map(classifyAction);
    const count = (name: ActionClass) => classes.filter((found) => found === name).length;
    expect(counted.rows[0]).toEqual({
      total: given.length,
      blocked: count("blocked"),
      logged: count("logged"),
      challenged: count("challenged"),
    });
  });
  await fc.assert(property, { numRuns: 200 });
});

test("Postgres reads the words of the configuration as the function does", async () => {
  const states = createActionStates({ stopped: ["tar pit", "it's"], through: ["quiz", "404"] });
  const odd = fc.constantFrom(
    "Tar-Pit",
    "IT'S",
    "404",
    " 4_29",
    "4030",
    "4\u0661\u0661",
    "Rate Limited",
    "-",
  );
  const anyAction = fc.oneof(actions, odd);
  const property = fc.asyncProperty(fc.array(anyAction, { minLength: 1, maxLength: 50 }), async (given) => {
    const { rows } = await database.pool.query<{ name: string }>(
      `select ${states.toSql("action")} as name from unnest($1::text[]) with ordinality as e(action, nr) order by nr`,
      [given],
    );
    expect(rows.map(({ name }) => name)).toEqual(given.map(states.classify));
  });
  await fc.assert(property, { numRuns: 200 });
});
