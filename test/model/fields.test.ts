import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { readSearch } from "#archive/rules/query/read-search.ts";
import { FIELD_NAMES, FIELDS, toFieldName } from "#model/fields.ts";

function read(field: string, op: string, value: string) {
  const given = readSearch({ from: 1, to: 2, filters: [{ field, op, value: [value] }] }, "search", "native");
  return "search" in given ? given.search.filters[0]?.value : Object.values(given.mistakes).flat().join(" ");
}

test("every field has one name on all faces, and the platform's name is accepted", () => {
  for (const name of FIELD_NAMES) expect([name, FIELDS[name]].map(toFieldName)).toEqual([name, name]);
  for (const other of ["", "__proto__", "constructor", "status", null]) expect(toFieldName(other)).toBeNull();
});

test("docs/api.md has every field, with the platform's name if the platform has the field", () => {
  const text = readFileSync(new URL("../../docs/api.md", import.meta.url), "utf8");
  const table = text.slice(text.indexOf("| Field | Is |"), text.indexOf("The platform's names are accepted"));
  const rows = table
    .split("\n")
    .slice(2)
    .map((line) => line.split("|").map((cell) => cell.trim()));
  const named = rows.flatMap(([, names = "", , key = ""]) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name = ""]) => [name, /`(\w+)`/.exec(key)?.[1] ?? name]),
  );
  expect(named).toEqual(FIELD_NAMES.map((name) => [name, FIELDS[name]]));
});

test.each([
  ["action", "eq", "blocked", ["blocked", "block"]],
  ["action", "eq", "block", ["block"]],
  ["action", "in", "Challenged", ["Challenged", "challenge"]],
  ["action", "contains", "logged", ["logged", "log"]],
  ["network", "eq", "AS64500", ["AS64500", "64500"]],
  ["asn", "eq", "64500", ["64500"]],
  ["country", "eq", "de", ["de", "DE"]],
  ["method", "eq", "post", ["post", "POST"]],
  ["host", "eq", "Shop.Example.com", ["Shop.Example.com", "shop.example.com"]],
  ["path", "eq", "login", ["login", "/login"]],
  ["path", "contains", "LOGIN", ["LOGIN"]],
  ["url", "eq", "https://shop.example.com/login?x", ["https://shop.example.com/login?x"]],
  ["rule", "eq", "", [""]],
])("%s %s %j finds %j", (field, op, value, texts) => {
  expect(read(field, op, value)).toEqual(texts);
});

test.each([
  ["action", "eq", "stopped", "block (or blocked)"],
  ["network", "eq", "Example Hosting", "AS64500"],
  ["country", "in", "Germany", "two letters"],
  ["method", "eq", "GET /", "such as POST"],
  ["host", "eq", "https://shop.example.com", "without scheme and path"],
  ["host", "contains", "shop/login", "url is the whole URL"],
  ["path", "eq", "/login?user=1", "without host and query"],
  ["path", "eq", "https://shop.example.com/login", "without host and query"],
  ["path", "wildcard", "*?id=*", "without query"],
  ["rule", "eq", "942*", "wildcard finds a family"],
  ["address", "eq", "203.0.113.0/24", "cidr finds a network"],
])("%s %s %j is a mistake that names the rule, not an empty answer", (field, op, value, rule) => {
  expect(read(field, op, value)).toContain(rule);
  expect(read(field, op, value)).toContain(JSON.stringify(value));
});
