import { describe, expect } from "vitest";
import { apiKeyPages } from "#platform/account.ts";
import { eventLogPages } from "#platform/list-event-logs.ts";
import { searchPages } from "#platform/search-event-logs.ts";
import { collect } from "./support/collect.ts";
import { failure, lastHour, listPage, test, today } from "./support/edge-test.ts";

describe("a pass over a day's log", () => {
  test("follows the tokens, each percent-encoded, to hasMoreData false", async ({ platform, edge }) => {
    platform.reply(200, listPage({ hasMoreData: true, continuationToken: "a/b=" }));
    platform.reply(200, listPage({ hasMoreData: true, continuationToken: "c" }));
    platform.reply(200, listPage({ hasMoreData: false, continuationToken: "never-asked" }));
    const pages = await collect(eventLogPages(edge.client.listEventLogs, today));
    expect(pages.map(({ token, nextToken, looped }) => ({ token, nextToken, looped }))).toEqual([
      { token: null, nextToken: "a/b=", looped: false },
      { token: "a/b=", nextToken: "c", looped: false },
      { token: "c", nextToken: null, looped: false },
    ]);
    expect(platform.requests.map((request) => request.path.split("/").slice(5).join("/"))).toEqual([
      "",
      "a%2Fb%3D",
      "c",
    ]);
  });

  test.for([
    { end: "an empty token", over: { continuationToken: "" } },
    { end: "a null token", over: { continuationToken: null } },
    { end: "an absent token", over: { continuationToken: undefined } },
  ])("ends at $end although hasMoreData is true", async ({ over }, { platform, edge }) => {
    platform.reply(200, listPage({ hasMoreData: true, ...over }));
    const pages = await collect(eventLogPages(edge.client.listEventLogs, today));
    expect(pages).toMatchObject([{ nextToken: null, looped: false }]);
  });

  test.for([
    { cycle: "the same token again", tokens: ["a", "a"] },
    { cycle: "a cycle of two", tokens: ["a", "b", "a"] },
    { cycle: "a cycle of three", tokens: ["x", "a", "b", "c", "a"] },
  ])("ends at $cycle and says that it looped", async ({ tokens }, { platform, edge }) => {
    for (const token of tokens)
      platform.reply(200, listPage({ hasMoreData: true, continuationToken: token }));
    const pages = await collect(eventLogPages(edge.client.listEventLogs, today));
    expect(pages).toHaveLength(tokens.length);
    expect(pages.map((page) => page.looped)).toEqual([...tokens.slice(1).map(() => false), true]);
  });

  test("resumed from a token notices that token coming again", async ({ platform, edge }) => {
    platform.reply(200, listPage({ hasMoreData: true, continuationToken: "mid" }));
    const pages = await collect(
      eventLogPages(edge.client.listEventLogs, { ...today, continuationToken: "mid" }),
    );
    expect(pages).toMatchObject([{ token: "mid", looped: true, nextToken: null }]);
  });

  test("stops asking when its reader stops", async ({ platform, edge }) => {
    platform.reply(200, listPage({ hasMoreData: true, continuationToken: "a" }));
    for await (const page of eventLogPages(edge.client.listEventLogs, today)) {
      expect(page.nextToken).toBe("a");
      break;
    }
    expect(platform.requests).toHaveLength(1);
  });

  test("fails where a page fails, after the pages before it", async ({ platform, edge }) => {
    platform.reply(200, listPage({ hasMoreData: true, continuationToken: "a" }));
    platform.reply(400, { title: "Bad token", status: 400 });
    const pages = eventLogPages(edge.client.listEventLogs, today);
    expect((await pages.next()).done).toBe(false);
    expect(await failure(pages.next())).toMatchObject({ code: "EDGE_REJECTED" });
  });
});

describe("the pages of a search", () => {
  const byTwo = { ...lastHour, request: { ...lastHour.request, pageSize: 2 } };
  const page = (index: number, rows: number) => ({
    rows: Array.from({ length: rows }, () => ({})),
    groups: null,
    total: 5,
    totalPages: 3,
    page: index,
  });

  test("run from the given page to totalPages", async ({ platform, edge }) => {
    platform.reply(200, page(1, 2));
    platform.reply(200, page(2, 1));
    const pages = await collect(
      searchPages(edge.client.searchEventLogs, { ...byTwo, request: { ...byTwo.request, page: 1 } }),
    );
    expect(pages).toHaveLength(2);
    expect(platform.requests.map((request) => (JSON.parse(request.body) as { page: number }).page)).toEqual([
      1, 2,
    ]);
  });

  test("end at an empty page when fewer are left than promised", async ({ platform, edge }) => {
    platform.reply(200, page(0, 2));
    platform.reply(200, page(1, 0));
    expect(await collect(searchPages(edge.client.searchEventLogs, byTwo))).toHaveLength(2);
  });

  test("are one when there is nothing", async ({ platform, edge }) => {
    platform.reply(200, { rows: [], total: 0, totalPages: 0 });
    expect(await collect(searchPages(edge.client.searchEventLogs, lastHour))).toHaveLength(1);
  });
});

test("key pages run until HasMoreItems is false, and an empty page ends them too", async ({
  platform,
  edge,
}) => {
  const item = { Id: 1, Key: "k", Roles: [] };
  platform.reply(200, { Items: [item], CurrentPage: 1, TotalItems: 3, HasMoreItems: true });
  platform.reply(200, { Items: [], CurrentPage: 2, TotalItems: 3, HasMoreItems: true });
  expect(await collect(apiKeyPages(edge.client.listApiKeys, { perPage: 5 }))).toHaveLength(2);
  expect(platform.requests.map((request) => request.path)).toEqual([
    "/apikey?page=1&perPage=5",
    "/apikey?page=2&perPage=5",
  ]);
});
