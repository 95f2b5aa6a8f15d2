import { expect, test } from "vitest";
import { renderDocs } from "#faces/http/routes/openapi.ts";

test("every name and type of the document is escaped in the page", () => {
  const hostile = (name: string) => `<b ${name}="'>`;
  const typed = { type: hostile("type") };
  const nested = { additionalProperties: { type: [hostile("list")] } };
  const schema = { $ref: `#/components/schemas/${hostile("ref")}` };
  const operation = {
    summary: hostile("summary"),
    tags: ["One"],
    parameters: [{ name: hostile("name"), in: hostile("in"), schema: typed }],
    requestBody: { content: { [hostile("media")]: { schema: nested } } },
    responses: { [hostile("status")]: { description: hostile("answer"), content: { json: { schema } } } },
  };
  const page = renderDocs(
    {
      info: { title: hostile("title"), version: hostile("version"), description: hostile("about") },
      tags: [{ name: "One", description: hostile("tag") }],
      paths: { [hostile("path")]: { [hostile("method")]: operation } },
      components: { schemas: { [hostile("schema")]: { properties: { [hostile("member")]: typed } } } },
    },
    "docs.css",
  );
  const written = [
    "type",
    "list",
    "ref",
    "name",
    "in",
    "media",
    "status",
    "path",
    "method",
    "schema",
    "member",
  ];
  for (const name of written) expect(page).toContain(`&lt;b ${name}=&quot;&#39;&gt;`);
  expect(page).not.toMatch(/<b [a-z]+="'/i);
});
