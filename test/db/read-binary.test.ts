import { expect, onTestFinished, test } from "vitest";
import { readBinary } from "../../db/search/read-binary.ts";
import { createMigratedDatabase } from "./migrated-database.ts";

test("bytes of every value, of none and of many arrive as they are, and null as null", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const client = await database.pool.connect();
  onTestFinished(() => client.release());
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte));
  const rows = await readBinary(
    client,
    `select 7, '\\x${all.toString("hex")}'::bytea, null::bytea, ''::bytea, decode(repeat('ff', 300000), 'hex') from generate_series(1, 3)`,
  );
  expect(rows).toHaveLength(3);
  for (const [number, bytes, nothing, empty, many] of rows) {
    expect(number?.readInt32BE()).toBe(7);
    expect(bytes).toEqual(all);
    expect(nothing).toBeNull();
    expect(empty).toHaveLength(0);
    expect(many).toEqual(Buffer.alloc(300_000, 0xff));
  }
  expect(await readBinary(client, "select 1 where false")).toEqual([]);
});
