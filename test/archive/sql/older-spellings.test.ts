import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { planFilters } from "#archive/rules/query/plan-search.ts";
import { toClauses } from "#archive/rules/sql/to-condition.ts";
import { createSearchDuckdb } from "#db/archive/archive-reader.ts";
import { ARCHIVE_FORMAT } from "#model/archive-layout.ts";
import { toPlainAddress } from "#model/ip-address.ts";

const PLAIN = ["203.0.113.9", "203.0.113.99", "1203.0.113.9", "20.30.1.139", "2001:db8::9", "2001:db8::99"];
const STORED = [
  ...PLAIN,
  ...PLAIN.flatMap((ip) => [`${ip}, 10.0.0.1`, `${ip},10.0.0.1`, `10.0.0.1, ${ip}`, `[${ip}]:443`]),
  ...PLAIN.flatMap((ip) =>
    ip.includes(":") ? [ip.toUpperCase(), `[${ip}]`] : [`${ip}:51234`, `::ffff:${ip}`, `[::ffff:${ip}]:443`],
  ),
  "[2001:DB8::9]:443",
  "2001:DB8::9, 10.0.0.1",
  "203.0.113.*",
  "",
];

test("an address and a network find the rows of older versions in every spelling, and no others", async () => {
  const folder = await mkdtemp(path.join(tmpdir(), "longwatch-spellings-"));
  const duckdb = createSearchDuckdb(folder, folder);
  onTestFinished(async () => {
    await duckdb.close();
    await rm(folder, { recursive: true, force: true });
  });
  const find = async (op: "eq" | "cidr", value: string[], not?: true) => {
    const filter = { field: "ip" as const, op, value, ...(not === undefined ? {} : { not }) };
    const { sql, values } = toClauses({ clauses: planFilters([filter]) }, ARCHIVE_FORMAT);
    const rows = STORED.map((ip) => `('${ip}')`).join();
    const asked = `select ip from (values ${rows}) as stored(ip) where ${sql}`;
    const [found = []] = await duckdb.run([{ sql: asked, values }], { timeoutMs: 10_000 });
    return found.map(([ip]) => ip as string).sort();
  };
  const those = (isMeant: (plain: string, stored: string) => boolean) =>
    STORED.filter((stored) => isMeant(toPlainAddress(stored).toLowerCase(), stored)).sort();
  // Postgres and files compare the plain spelling exactly.
  const isSame = (ip: string) => (plain: string, stored: string) =>
    plain === ip && !(stored === stored.toUpperCase() && /^[0-9A-F:]+$/.test(stored) && stored !== ip);
  for (const ip of ["203.0.113.9", "2001:db8::9"]) {
    expect(await find("eq", [ip])).toEqual(those(isSame(ip)));
    expect(await find("eq", [ip], true)).toEqual(those((...one) => !isSame(ip)(...one)));
    expect(await find("eq", [`[${ip}]:443`])).toEqual(those(isSame(ip)));
  }
  const both = those((...one) => isSame("203.0.113.9")(...one) || isSame("2001:db8::9")(...one));
  expect(await find("eq", ["203.0.113.9", "2001:db8::9"])).toEqual(both);
  const many = Array.from({ length: 20 }, (_, i) => `198.51.100.${i}`);
  expect(await find("eq", [...many, "203.0.113.9"])).toEqual(those(isSame("203.0.113.9")));
  for (const network of ["203.0.113.0/24", "203.0.112.0/20", "128.0.0.0/1"])
    expect(await find("cidr", [network])).toEqual(those((plain) => plain.startsWith("203.0.113.")));
  const short = await find("cidr", ["2001:db8::/32"]);
  expect(short).toEqual(those((plain) => plain.startsWith("2001:db8:")));
});
