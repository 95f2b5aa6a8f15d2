import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { applyMigrations, listMigrations, migrate } from "#db/migrate.ts";
import { createTestDatabase } from "../support/database.ts";
import { readCatalog } from "./read-catalog.ts";
import { createDatabase02, migrateTo02 } from "./version-02.ts";

const [BASELINE = 0] = listMigrations();

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  onTestFinished(() => client.end());
  return client;
}

/** Returns a database with nothing but the baseline. */
async function createBaseline(): Promise<{ url: string; client: pg.Client }> {
  const database = await createTestDatabase();
  onTestFinished(() => database.drop());
  const client = await connect(database.url);
  await applyMigrations(client, { after: 0, to: BASELINE });
  return { url: database.url, client };
}

const LEDGER = "select * from drizzle.__drizzle_migrations order by id";

test("the baseline makes the catalog that the migrations of version 0.2 made", async () => {
  const { client } = await createBaseline();
  const catalog = await readCatalog(await connect((await createDatabase02()).url));

  expect(catalog.length).toBeGreaterThan(500);
  expect(await readCatalog(client)).toEqual(catalog);
});

test("a replica of version 0.2 finds its own last migration in a database of the baseline and changes nothing", async () => {
  const { url, client } = await createBaseline();
  const [catalog, ledger] = [await readCatalog(client), (await client.query(LEDGER)).rows];

  await migrateTo02(url);

  expect(await readCatalog(client)).toEqual(catalog);
  expect((await client.query(LEDGER)).rows).toEqual(ledger);
});

test.each([0, 12, 27])(
  "a database of version 0.2 with %i as its last migration is refused and left as it is",
  async (last) => {
    const { url } = await createDatabase02(last);
    const client = await connect(url);
    const [catalog, ledger] = [await readCatalog(client), (await client.query(LEDGER)).rows];

    await expect(migrate({ url })).rejects.toMatchObject({
      code: "SCHEMA_TOO_OLD",
      message: expect.stringContaining("start Longwatch 0.2.0 of the commit 4b14ecc7 once"),
    });
    expect(await readCatalog(client)).toEqual(catalog);
    expect((await client.query(LEDGER)).rows).toEqual(ledger);

    await migrateTo02(url);
    await migrate({ url });
  },
);
