import { expect, test } from "vitest";
import { z } from "zod";
import { AlertDetail } from "#alerts/operations/alert-detail.ts";
import { AlertContext } from "#alerts/operations/alerts.ts";
import { Name, Text } from "#operations/fields.ts";
import { OPERATIONS } from "#operations/index.ts";
import { findUndecided, maskOutput } from "#operations/perform.ts";

test("every operation has a name, an address and a method of its own", () => {
  expect(OPERATIONS.length).toBeGreaterThan(3);
  const names = OPERATIONS.map(({ name }) => name);
  expect(new Set(names).size).toBe(names.length);
  const addresses = OPERATIONS.map(({ http }) => http.join(" "));
  expect(new Set(addresses).size).toBe(addresses.length);
});

test("every part of an operation's path is a member of its input", () => {
  for (const { name, http, input } of OPERATIONS)
    for (const part of http[1].match(/(?<=:)\w+/g) ?? [])
      expect(Object.keys(input.shape).map((member) => `${name}: ${member}`)).toContain(`${name}: ${part}`);
});

test("every operation with a command has an example that begins with its name, and prints something", () => {
  for (const { name, command } of OPERATIONS) {
    const [subject = "", verb = ""] = name.split(".");
    for (const form of [command ?? []].flat()) {
      const words = `${subject} ${form.name ?? verb}`.trim();
      expect(form.examples.length, `${name}: examples`).toBeGreaterThan(0);
      for (const example of form.examples)
        expect(example.startsWith(words), `${name}: ${example}`).toBe(true);
      expect(form.columns ?? form.say, `${name}: output`).toBeDefined();
    }
  }
});

test("every text in an answer says what a masked key sees", () => {
  const undecided = OPERATIONS.flatMap(({ name, output }) =>
    findUndecided(output as z.ZodType).map((path) => `${name}${path}`),
  );
  expect(undecided).toEqual([]);
});

test("a text of which nobody has decided is found, wherever it is", () => {
  const schema = z.object({
    decided: Text,
    list: z.array(z.object({ text: z.string().nullable(), name: Name })),
    either: z.union([z.number(), z.record(z.string(), z.string())]).optional(),
  });
  expect(findUndecided(schema)).toEqual([".list[].text", ".either.*"]);
});

test("a masked key sees no whole address in lists, records and options", () => {
  const schema = z.object({
    items: z.array(z.object({ text: Text.nullable(), name: Name })),
    either: z.union([z.object({ ip: z.string().meta({ masked: "address" }) }), z.number()]),
    secret: z.array(z.string()).nullable().meta({ masked: "nothing" }),
  });
  const value = {
    items: [
      { text: "from 198.51.100.7", name: "198.51.100.7" },
      { text: null, name: "b" },
    ],
    either: { ip: "198.51.100.7" },
    secret: ["198.51.100.7"],
  };
  const masked = maskOutput(schema, value);
  expect(masked).toEqual({
    items: [
      { text: expect.stringMatching(/^from 198\.51\.100\.\D/), name: "198.51.100.7" },
      { text: null, name: "b" },
    ],
    either: { ip: expect.stringMatching(/^198\.51\.100\.\D/) },
    secret: [null],
  });
  expect(value.either.ip).toBe("198.51.100.7");
});

test("a masked key sees the addresses of an alert's evidence shortened, and those that look the same as one", () => {
  const address = (end: number) => ({ value: `198.51.100.${end}`, count: 1, share: 0.5 });
  const ips = [address(7), address(8)];
  const merged = [{ value: expect.stringMatching(/^198\.51\.100\.\D/), count: 2, share: 1 }];
  expect(maskOutput(AlertContext, { during: { top: { ips } } })).toEqual({
    during: { top: { ips: merged } },
  });
  expect(maskOutput(AlertDetail, { evidence: { ips } })).toEqual({ evidence: { ips: merged } });
});

test("a masked key gets null for a value that it may not see, also for a whole answer and for an option", () => {
  const hidden = z.string().nullable().meta({ masked: "nothing" });
  expect(maskOutput(hidden, "198.51.100.7")).toBeNull();
  expect(maskOutput(z.object({ either: z.union([z.number(), hidden]) }), { either: "198.51.100.7" })).toEqual(
    {
      either: null,
    },
  );
});
