import { expect, test } from "vitest";
import { parseDetails } from "#alerts/rules/alert-record.ts";
import { messageOf } from "../delivery/support/messages.ts";

test("parseDetails returns the stored message", () => {
  const message = messageOf();
  expect(parseDetails(JSON.parse(JSON.stringify({ message })))).toEqual({ message });
});

test.each([
  ["no details", null],
  ["no message", {}],
  ["a message without its required members", { message: { headline: "x" } }],
  ["a member of another type", { message: { ...messageOf(), members: 5 } }],
])("parseDetails returns no message for %s", (_, details) => {
  expect(parseDetails(details)).toEqual({ message: null });
});
