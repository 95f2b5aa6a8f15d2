import { expect, it, onTestFinished, vi } from "vitest";
import { createRefuseCostly } from "#faces/http/limits/refuse.ts";
import { NOW, openArchive, post, serve } from "./support.ts";

const WINDOW = { from: NOW - 3_600_000, to: NOW, query: "a" };

const { ask, http, key, database, emulator } = await openArchive({
  zones: [101],
  eventsPerSecond: 0.05,
  historyHours: 2,
});

it("stops the statement of a client that left, and uses its connection again", async () => {
  const statements = async () => {
    const { rows } = await database.pool.query<{ waiting: number }>(
      `select count(*)::int as waiting from pg_stat_activity
       where application_name = 'test queries' and datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0]?.waiting ?? 0;
  };
  for (const operation of ["search", "export", "search"]) {
    const path = `/shield/event-logs/101/${operation}`;
    const holder = await database.pool.connect();
    onTestFinished(() => holder.release(true));
    await holder.query("begin; lock table waf_events in access exclusive mode");
    const leaving = new AbortController();
    const headers = { AccessKey: key, "content-type": "application/json" };
    const asked = fetch(http.url + path, { ...post(WINDOW), headers, signal: leaving.signal });
    await vi.waitFor(async () => expect(await statements()).toBe(1));
    leaving.abort();
    await expect(asked).rejects.toThrow("aborted");
    await vi.waitFor(async () => expect(await statements()).toBe(0));
    await holder.query("rollback");
    for (let round = 0; round < 3; round++) expect((await ask(path, post(WINDOW))).status).toBe(200);
  }
  expect(http.lines.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

it("refuses what would read more events than a question may, in the platform's form, and nothing else", async () => {
  const strict = await serve(database, emulator, { refuseCostly: createRefuseCostly(100) });
  const search = (more: object) =>
    strict.ask("/shield/event-logs/101/search", post({ ...WINDOW, query: "", ...more }));
  for (const more of [{ query: "a" }, { groupBy: ["ip"] }]) {
    const refused = await search(more);
    expect(refused.status).toBe(400);
    expect(JSON.parse(refused.text)).toMatchObject({
      title: "Bad Request",
      detail: expect.stringContaining("at most 100 are allowed") as string,
    });
  }
  for (const more of [{}, { query: "a", from: NOW - 1 }]) expect((await search(more)).status).toBe(200);
});
