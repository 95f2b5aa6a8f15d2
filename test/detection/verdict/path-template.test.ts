import fc from "fast-check";
import { expect, test } from "vitest";
import { inferSlugs, PLACEHOLDERS, templateOf, templatesOf } from "#detection/rules/verdict/path-template.ts";

const UUID = "9b2e0f3a-1c1d-4e5f-8a9b-333344445555";

test.each([
  ["https://shop.example/products/17/reviews?sort=new#top", "/products/{n}/reviews"],
  ["/products/17", "/products/{n}"],
  ["https://shop.example", "/"],
  ["https://shop.example/17/17/", "/17/{n}/"],
  [`/orders/${UUID}/2026-11-25`, "/orders/{uuid}/{date}"],
  ["/assets/9f86d081/deadbeef/9f86d08", "/assets/{hex}/deadbeef/9f86d08"],
  ["/invite/aB3dE6gH9k/aB3dE6gH9/abcdefghijklmnopqrst", "/invite/{token}/aB3dE6gH9/{token}"],
  ["/wiki/terms-and-conditions-of-sale", "/wiki/terms-and-conditions-of-sale"],
  ["/a/%31%32/caf%C3%A9", "/a/%31%32/caf%C3%A9"],
  ["/a/b/c/d/e/f/g/h/i/j", "/a/b/c/d/e/f/g/h/{...}"],
  ["*", "/*"],
  ["", ""],
])("the template of %j is %j", (url, template) => {
  expect(templateOf(url)).toBe(template);
});

test("the first segment is never replaced", () => {
  for (const name of ["17", UUID, "2026-11-25", "9f86d081", "aB3dE6gH9kL"])
    expect(templateOf(`/${name}/${name}`)).toMatch(new RegExp(`^/${name}/\\{[a-z]+\\}$`));
});

test("each placeholder's expression matches what it replaces, and no other segment", () => {
  for (const [segment, name] of [
    ["17", "{n}"],
    [UUID, "{uuid}"],
    ["2026-11-25", "{date}"],
    ["9f86d081", "{hex}"],
    ["aB3dE6gH9kL", "{token}"],
    ["red-shoe", "{slug}"],
  ] as const)
    expect([segment, `${segment}/x`].map((text) => new RegExp(`^${PLACEHOLDERS[name]}$`).test(text))).toEqual(
      [true, false],
    );
});

test("more than twelve names after one prefix become {slug} where they have a hyphen", () => {
  const posts = Array.from(
    { length: 13 },
    (_, index) => `/blog/post-${String.fromCharCode(97 + index)}/comments`,
  );
  const toTemplate = templatesOf([...posts, "/blog/archive", "/shop/red-shoe"]);
  expect(new Set(posts.map(toTemplate))).toEqual(new Set(["/blog/{slug}/comments"]));
  expect(toTemplate("/blog/never-seen/x")).toBe("/blog/{slug}/x");
  expect(toTemplate("/blog/archive")).toBe("/blog/archive");
  expect(toTemplate("/shop/red-shoe")).toBe("/shop/red-shoe");
  expect(templatesOf(posts.slice(0, 12))(posts[0] ?? "")).toBe(posts[0]);
  expect(inferSlugs(new Set(posts))("/blog/{slug}/comments")).toBe("/blog/{slug}/comments");
});

test("names are counted after slugs that were inferred before them", () => {
  const urls = Array.from({ length: 26 }, (_, index) => `/shop/kind-${index % 13}x/shoe-${index}x`);
  expect(new Set(urls.map(templatesOf(urls)))).toEqual(new Set(["/shop/{slug}/{slug}"]));
});

test("numbers are no names, however many there are", () => {
  const urls = Array.from({ length: 40 }, (_, index) => `/a/${index}/b-c`);
  expect(new Set(urls.map(templatesOf(urls)))).toEqual(new Set(["/a/{n}/b-c"]));
});

test("names of object members are ordinary segments", () => {
  expect(templatesOf(["/a/constructor"])("/a/constructor/toString")).toBe("/a/constructor/toString");
});

test("any URL has a template of bounded length, which is its own template", () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "/",
      "//",
      "?",
      "#",
      "%2f",
      "-",
      ".",
      "..",
      "{n}",
      "1",
      UUID,
      "https://h",
      "9f86d081",
      "A",
    ),
    fc.string({ unit: "binary", maxLength: 12 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 40 }), (pieces) => {
      const url = pieces.join("");
      const template = templateOf(url);
      expect(template.length).toBeLessThan(600);
      expect(templateOf(template)).toBe(template);
      expect(template).toMatch(/^(?:\/[^?#]*)?$/);
      const toTemplate = templatesOf([url, ...pieces]);
      expect(toTemplate(toTemplate(url))).toBe(toTemplate(url));
    }),
  );
});

test("a path of thousands of segments, and thousands of paths, end in few templates", () => {
  expect(templateOf(`https://h${"/x-y".repeat(100_000)}`)).toBe(`${"/x-y".repeat(8)}/{...}`);
  const urls = Array.from(
    { length: 3_000 },
    (_, index) => `/a/n-${index}x/n-${index % 700}y/n-${index % 50}z`,
  );
  expect(new Set(urls.map(templatesOf(urls))).size).toBe(1);
});
