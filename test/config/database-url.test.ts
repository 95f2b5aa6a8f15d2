import { expect, test } from "vitest";
import { parseConfig } from "#config/config.ts";
import { readDatabaseUrl } from "#config/read-database-url.ts";
import { UsageError } from "#lib/errors.ts";
import { listSqlHosts } from "#lib/sql-session.ts";

const SECRET = "s3cretword";

test.each([
  [`postgres://u:${SECRET}#x@h/db`, "#"],
  [`postgres://u:${SECRET}/x@h/db`, "/"],
  [`postgres://u:12/${SECRET}@h/db`, "/"],
  [`postgres://u:${SECRET}?x@h/db`, "?"],
  [`postgres://u:a@${SECRET}/x@h/db`, "/"],
  [`postgresql://u:${SECRET}#@h:5432/db?sslmode=disable`, "#"],
  [`postgres://u:${SECRET}%zz@h/db`, "%"],
])(
  "an address whose password holds a character that ends it is refused by that character: %s",
  (url, sign) => {
    let failure: unknown;
    try {
      parseConfig({ DATABASE_URL: url });
    } catch (thrown) {
      failure = thrown;
    }
    expect(failure).toBeInstanceOf(UsageError);
    const { mistakes } = failure as UsageError;
    expect(mistakes).toEqual([
      expect.stringContaining(`DATABASE_URL: user or password contains ${sign}: write`),
    ]);
    expect(mistakes.join("")).not.toContain(SECRET);
  },
);

test.each([
  ["postgres://u:p%23%2F%40@h/db", "postgres://u:p%23%2F%40@h/db"],
  ["postgres:///db?host=/var/run/postgresql", "postgres:///db?host=/var/run/postgresql"],
  ["postgres://u:p@/db?host=/run/pg", "postgres://u:p@localhost/db?host=/run/pg"],
  ["postgres://u@%2Frun%2Fpg/db", "postgres://u@%2Frun%2Fpg/db"],
  ["postgres://u@h/db?application_name=a@b", "postgres://u@h/db?application_name=a@b"],
  [
    "postgres://u:p@one:5432,two:5433/db?target_session_attrs=primary",
    "postgres://u:p@one:5432/db?target_session_attrs=primary&host=one%2Ctwo&port=5432%2C5433",
  ],
  [
    "postgres://u:p@one,[2001:db8::2]:6/db",
    "postgres://u:p@one/db?host=one%2C2001%3Adb8%3A%3A2&port=5432%2C6",
  ],
])("%s is taken", (given, url) => {
  expect(readDatabaseUrl(given)).toEqual({ url });
  expect(parseConfig({ DATABASE_URL: given }).databaseUrl?.reveal()).toBe(url);
});

test("target_session_attrs that allows a standby is refused", () => {
  expect(() => parseConfig({ DATABASE_URL: "postgres://u@one,two/db?target_session_attrs=any" })).toThrow(
    'DATABASE_URL: target_session_attrs="any": must be read-write or primary, because Longwatch writes',
  );
});

test.each([
  ["postgres://u@one/db", []],
  ["postgres://u@one/db?host=/run/pg", []],
  [
    "postgres://u@one/db?host=one,two&port=1,2",
    [
      { host: "one", port: "1" },
      { host: "two", port: "2" },
    ],
  ],
  [
    "postgres:///db?host=/run/a,/run/b",
    [
      { host: "/run/a", port: "5432" },
      { host: "/run/b", port: "5432" },
    ],
  ],
])("%s has these hosts", (url, hosts) => expect(listSqlHosts(url)).toEqual(hosts));

test("a text that is no postgres address is refused once", () => {
  expect(() => parseConfig({ DATABASE_URL: "postgres://[" })).toThrow(
    /^DATABASE_URL: must be a postgres:\/\/ URL$/,
  );
});
