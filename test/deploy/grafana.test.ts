import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { createMigratedDatabase } from "../db/migrated-database.ts";
import { metricsIn, ownMetrics } from "./metric-names.ts";

const FOLDER = path.join(import.meta.dirname, "../../deploy/grafana");

interface Query {
  readonly expr?: string;
  readonly rawSql?: string;
}

interface Dashboard {
  readonly uid: string;
  readonly templating: { readonly list: readonly { readonly query: string | { readonly query: string } }[] };
  readonly panels: readonly {
    readonly title: string;
    readonly gridPos: Readonly<Record<"x" | "y" | "w" | "h", number>>;
    readonly targets: readonly Query[];
  }[];
}

const dashboards = readdirSync(FOLDER)
  .filter((name) => name.endsWith(".json"))
  .map((name): [string, Dashboard] => [name, JSON.parse(readFileSync(path.join(FOLDER, name), "utf8"))]);

const queriesOf = ({ panels }: Dashboard) => panels.flatMap(({ targets }) => targets);
const variablesOf = ({ templating }: Dashboard) =>
  templating.list.map(({ query }) => (typeof query === "string" ? query : query.query));

test("the dashboards use only metrics that the service exposes, and most of those", async () => {
  const known = await ownMetrics();
  const used = new Set(
    dashboards.flatMap(([, board]) =>
      [...variablesOf(board), ...queriesOf(board).map(({ expr = "" }) => expr)].flatMap(metricsIn),
    ),
  );
  expect([...used].filter((name) => !known.includes(name))).toEqual([]);
  const own = known.filter((name) => name.startsWith("longwatch_") && !/_(sum|count)$/.test(name));
  expect(own.filter((name) => !used.has(name))).toEqual([
    "longwatch_config_reloads_total",
    "longwatch_config_last_reload_success_timestamp_seconds",
  ]);
});

test("every SQL statement of the dashboards runs on a migrated database", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  onTestFinished(() => client.end());
  const statements = dashboards.flatMap(([, board]) => [
    ...variablesOf(board).filter((query) => query.startsWith("select")),
    ...queriesOf(board).flatMap(({ rawSql }) => (rawSql === undefined ? [] : [rawSql])),
  ]);
  expect(statements.length).toBeGreaterThan(4);
  for (const statement of statements)
    await client.query(
      statement
        .replaceAll("$zone", "101")
        .replaceAll(/\$__timeFilter\((\w+)\)/g, "$1 between now() - interval '1 day' and now()"),
    );
});

test.each(dashboards)("the panels of %s do not overlap and stay within 24 columns", (_name, { panels }) => {
  const cells = panels.flatMap(({ gridPos: { x, y, w, h } }) =>
    Array.from({ length: w * h }, (_, cell) => `${x + (cell % w)},${y + Math.floor(cell / w)}`),
  );
  expect(new Set(cells).size).toBe(cells.length);
  for (const { gridPos } of panels) expect(gridPos.x + gridPos.w).toBeLessThanOrEqual(24);
});
