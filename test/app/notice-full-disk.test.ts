import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createFullDiskNotice } from "#app/report-outages.ts";
import { systemClock } from "#lib/clock.ts";
import { defineJob } from "#store/queue/define-job.ts";
import { createMigratedDatabase } from "../db/migrated-database.ts";

const signal = new AbortController().signal;

function open(overAfterMs: number) {
  const seen: string[] = [];
  const lines: string[] = [];
  const notice = createFullDiskNotice({
    dataDir: null,
    clock: systemClock,
    log: pino({ level: "error" }, { write: (line: string) => void lines.push(line) }),
    watch: {
      failed: (source, { headline, isDiskFull }) => void seen.push(`${source} ${isDiskFull} ${headline}`),
      recovered: (source) => void seen.push(`${source} recovered`),
    },
    overAfterMs,
  });
  onTestFinished(() => notice.stop());
  return { notice, seen, lines };
}

test("a job that fails with SQLSTATE 53100 reports a full disk in words, once a minute in the log, and its end", async () => {
  const database = await createMigratedDatabase();
  onTestFinished(() => database.drop());
  const { notice, seen, lines } = open(2_000);
  const job = notice.watchJob(
    defineJob({
      name: "full",
      queue: "ingest",
      payload: z.object({}),
      attempts: 1,
      timeoutMs: 1_000,
      run: () =>
        database.db.execute(
          "do $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$",
        ) as unknown as Promise<void>,
    }),
  );

  for (let n = 0; n < 3; n++) await expect(job.run({} as never, signal)).rejects.toThrow("Failed query");

  expect(seen.filter((one) => one.startsWith("disk true"))).toHaveLength(3);
  expect(seen[0]).toMatch(
    /^disk true The disk of the database is full, so new events cannot be stored\. Free space or enlarge the disk: the disk of the Postgres server of DATABASE_URL \(SQLSTATE 53100\)$/,
  );
  expect(lines.filter((line) => line.includes("database disk ran full"))).toHaveLength(1);
  await expect.poll(() => seen.at(-1), { timeout: 10_000 }).toBe("disk recovered");
});

test("another failure is no full disk", async () => {
  const { notice, seen } = open(50);
  notice.onFailure(Object.assign(new Error("no"), { code: "53300" }));
  notice.onFailure("no error");
  expect(seen).toEqual([]);
});
