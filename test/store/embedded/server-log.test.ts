import { expect, test } from "vitest";
import { createServerLog } from "#store/embedded/postgres.ts";

const at = "2026-11-22 09:38:44.431 UTC [123]";

function errorsOf(...lines: string[]): string[] {
  const log = createServerLog();
  // In pieces, as a pipe hands them over.
  const text = lines.map((line) => `${line}\n`).join("");
  for (let from = 0; from < text.length; from += 7) log.add(text.slice(from, from + 7));
  return log.errors();
}

test("the lines that say why a server failed are kept, each once", () => {
  const kept = [
    `${at} LOG:  server process (PID 7) was terminated by signal 9: Killed`,
    `${at} ERROR:  could not extend file "base/5/1": No space left on device`,
    `${at} PANIC:  could not write to file "pg_wal/xlogtemp.1": No space left on device`,
    `${at} FATAL:  could not write lock file "postmaster.pid": No space left on device`,
  ];
  expect(errorsOf(...kept, ...kept)).toEqual(kept);
});

test("statements, data and what every start and stop says are left out", () => {
  expect(
    errorsOf(
      `${at} ERROR:  duplicate key value violates unique constraint "waf_events_pkey"`,
      `${at} DETAIL:  Key (ip)=(203.0.113.7) already exists.`,
      `${at} STATEMENT:  insert into waf_events values ('203.0.113.7') -- FATAL`,
      `${at} FATAL:  the database system is starting up`,
      `${at} FATAL:  terminating connection due to administrator command`,
      `${at} LOG:  database system is ready to accept connections`,
    ),
  ).toEqual([]);
});

test("at most the last five lines are kept, and a long line is cut", () => {
  const lines = Array.from({ length: 9 }, (_, n) => `${at} FATAL:  number ${n}`);
  expect(errorsOf(...lines)).toEqual(lines.slice(-5));
  expect(errorsOf(`${at} FATAL:  ${"x".repeat(5_000)}`)[0]).toHaveLength(300);
});
