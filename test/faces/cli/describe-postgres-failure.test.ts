import { expect, test } from "vitest";
import { describePostgresFailure } from "#store/embedded/postgres-error.ts";

const failure = (facts: object, message = "failed") => Object.assign(new Error(message), facts);

test.each<[string, unknown, string]>([
  [
    "a refused connection, also below what the query builder threw",
    new Error("Failed query: select 1", {
      cause: failure({ code: "ECONNREFUSED", syscall: "connect", address: "10.0.0.7", port: 5432 }),
    }),
    "Postgres at 10.0.0.7:5432 cannot be reached (ECONNREFUSED): check that it runs and that DATABASE_URL is correct",
  ],
  [
    "a host with several addresses",
    new AggregateError([failure({ code: "ETIMEDOUT", address: "::1", port: 5432 }), failure({})]),
    "Postgres at ::1:5432 cannot be reached (ETIMEDOUT): check that it runs and that DATABASE_URL is correct",
  ],
  [
    "an unknown host",
    failure({ code: "ENOTFOUND", syscall: "getaddrinfo", hostname: "db.invalid" }),
    "Postgres at db.invalid cannot be reached (ENOTFOUND): check that it runs and that DATABASE_URL is correct",
  ],
  [
    "a wrong password",
    failure({ code: "28P01" }, 'password authentication failed for user "longwatch"'),
    'Postgres: password authentication failed for user "longwatch" (28P01): check user name and password in DATABASE_URL',
  ],
  [
    "a missing database",
    failure({ code: "3D000" }, 'database "nodb" does not exist'),
    'Postgres: database "nodb" does not exist (3D000): create the database, or correct DATABASE_URL',
  ],
  [
    "a full disk of the server",
    failure({ code: "53100" }, "could not extend file: No space left on device"),
    "Postgres: could not extend file: No space left on device (53100): the disk of the Postgres server is full: free space on it or enlarge it",
  ],
  [
    "a connection that ended in the first query of its session",
    new Error("Failed query: select 1", {
      cause: new Error("Failed query: insert", { cause: new Error("Connection terminated unexpectedly") }),
    }),
    "Postgres: Connection terminated unexpectedly: check that it runs",
  ],
  [
    "missing tables",
    failure({ code: "42P01" }),
    "the database lacks the tables of this version: run npm run -s longwatch -- migrate with its DATABASE_URL, or start the service once (npm start)",
  ],
])("the error for %s has the next step", (_what, thrown, expected) => {
  expect(describePostgresFailure(thrown)).toBe(expected);
});

test.each<[string, unknown]>([
  ["a missing file", failure({ code: "ENOENT", syscall: "open" })],
  ["a query that Postgres refuses", failure({ code: "22P02" })],
  ["anything else", new Error("no")],
  ["what is no error", "no"],
])("%s is not said to be about the connection", (_what, thrown) => {
  expect(describePostgresFailure(thrown)).toBeNull();
});
