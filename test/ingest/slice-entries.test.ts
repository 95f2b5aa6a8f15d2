import fc from "fast-check";
import { expect, test } from "vitest";
import { sliceEntries } from "#lib/json.ts";

test("the slices of any page are its entries, and the bytes between the brackets", () => {
  const page = fc.record({ before: fc.jsonValue(), logs: fc.array(fc.jsonValue()), after: fc.jsonValue() });
  fc.assert(
    fc.property(page, fc.constantFrom(undefined, 1, "\t"), (value, space) => {
      const slices = sliceEntries(Buffer.from(JSON.stringify(value, null, space)), "logs")?.items;
      expect(slices?.map((slice) => JSON.parse(slice.toString()) as unknown)).toEqual(
        value.logs.map((entry) => JSON.parse(JSON.stringify(entry)) as unknown),
      );
    }),
  );
});

test("an entry keeps the spelling it came with", () => {
  const body = Buffer.from(
    `\uFEFF{"logs" : [ {"a":1.0e0 , "b":"\\u0041\\/\\"]"} ,"x" , 12345678901234567890 ] }`,
  );
  expect(sliceEntries(body, "logs")?.items.map(String)).toEqual([
    `{"a":1.0e0 , "b":"\\u0041\\/\\"]"}`,
    `"x"`,
    "12345678901234567890",
  ]);
});

test.each([
  [`{"logs":[]}`, []],
  [`{"logs":null}`, null],
  [`{"rows":[1]}`, null],
  [`{"inner":{"logs":[1]},"list":["logs",[2]]}`, null],
  [`{"x":"logs","logs":[1],"logs":[2,3]}`, ["2", "3"]],
])("%s", (body, expected) => {
  const sliced = sliceEntries(Buffer.from(body), "logs");
  expect(sliced === null ? null : sliced.items.map(String)).toEqual(expected);
});
