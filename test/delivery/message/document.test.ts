import { expect, test } from "vitest";
import { type Document, toDocument } from "#delivery/rules/message/document.ts";
import { fit, toPlainLines, toPlainOf } from "#delivery/rules/message/write-document.ts";
import { messageOf, verdictMessage } from "../support/messages.ts";

const long = (unit: string) => `${unit} `.repeat(400);
const LONG = verdictMessage({
  details: ["a fact", long("another fact")],
  marked: long("marked"),
  advice: { state: "present", text: `short\n${long("advice")}`, reason: null },
});
const WHOLE = toDocument(LONG, "whole");
const sizeOf = (document: Document) => toPlainLines(document).join("\n").length;
const asIt = (text: string) => text;
const PLAIN = { label: asIt, own: asIt, text: asIt, code: asIt, link: asIt };
const fitTo = (chars: number) =>
  fit(
    WHOLE,
    PLAIN,
    (_, document) => document,
    (document) => sizeOf(document) - chars,
  );
const namesOf = ({ blocks }: Document) => new Set<string>(blocks.map(({ name }) => name));
const SIZES = Array.from({ length: sizeOf(WHOLE) / 20 }, (_, index) => sizeOf(WHOLE) - index * 20);

test("a document that fits is written as it is", () => {
  expect(fitTo(sizeOf(WHOLE))).toEqual(WHOLE);
});

test("the advice leaves a document first, then the top lists, then the links; what comes first never does", () => {
  const left = SIZES.map((size) => [...namesOf(WHOLE)].filter((name) => !namesOf(fitTo(size)).has(name)));
  const orders = new Set(left.map((names) => names.toReversed().join()));
  expect([...orders]).toEqual(["", "advice", "advice,top", "advice,top,links"]);
});

test("every line of the verdict, every command and Longwatch's own words stay, however small the space is", () => {
  const least = fitTo(0);
  for (const name of ["headline", "curve", "commands"] as const)
    expect(toPlainOf(least, name)).toEqual(toPlainOf(WHOLE, name));
  expect(toPlainOf(least, "facts")).toEqual(toPlainOf(WHOLE, "facts").slice(0, 2));
  const labels = (document: Document) => toPlainOf(document, "verdict").map((line) => line.split(":")[0]);
  expect(labels(least)).toEqual(labels(WHOLE));
  for (const line of toPlainOf(least, "verdict")) expect(line.length).toBeLessThan(160);
});

test("a long text is cut no more than necessary before its line is left out", () => {
  const fitted = fitTo(sizeOf(WHOLE) - 50);
  expect(namesOf(fitted)).toEqual(namesOf(WHOLE));
  expect(sizeOf(WHOLE) - sizeOf(fitted)).toBeLessThan(70);
  expect(toPlainOf(fitted, "advice").at(-1)).toMatch(/…$/);
  for (const size of SIZES.filter((one) => one > sizeOf(fitTo(0))))
    expect(sizeOf(fitTo(size))).toBeLessThanOrEqual(size);
});

test("a block that takes none of the exceeded space stays as it is", () => {
  const document = toDocument(messageOf(), "whole");
  const fitted = fit(
    document,
    PLAIN,
    (_, shown) => shown,
    (shown) => shown.links.length + (namesOf(shown).has("links") ? 1 : 0),
  );
  expect([...namesOf(document)].filter((name) => !namesOf(fitted).has(name))).toEqual(["links"]);
});
