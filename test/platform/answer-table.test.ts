import { expect } from "vitest";
import type { EdgeClient } from "#platform/edge-client.ts";
import { EdgeError } from "#platform/edge-error.ts";
import { collect } from "./support/collect.ts";
import { lastHour, test, today, ZONE } from "./support/edge-test.ts";
import { block } from "./support/status-block.ts";

type Outcome = "result" | "EDGE_MALFORMED" | "EDGE_REJECTED" | "EDGE_FORBIDDEN" | "EDGE_PLAN";

/** Every status that claims a success. The document shows the status of a search only; others may have any with a body. */
const statusesOf = (name: string): readonly [status: number, outcome: Outcome][] => {
  const other = name.includes("search") ? "EDGE_MALFORMED" : "result";
  return [
    [200, "result"],
    [201, other],
    [202, "EDGE_MALFORMED"],
    [203, other],
    [206, other],
  ];
};

const NO_TEXTS = { message: null, errorKey: null };

/** Returns the expected result for an answer with this status block and no other error. */
const BLOCKS: readonly [name: string, block: unknown, outcome: Outcome][] = [
  ["absent", undefined, "result"],
  ["null", null, "result"],
  ["the default block", { statusCode: 0, success: false, ...NO_TEXTS }, "result"],
  ["success", { statusCode: 200, success: true, ...NO_TEXTS }, "result"],
  ["success with a message", block({ statusCode: 200, success: true, message: "Done." }), "result"],
  ["failure without a text", { statusCode: 202, success: false, ...NO_TEXTS }, "EDGE_REJECTED"],
  ["failure with status 200", { statusCode: 200, success: false, ...NO_TEXTS }, "EDGE_REJECTED"],
  ["failure with an error status", block({ statusCode: 403 }), "EDGE_FORBIDDEN"],
  ["failure with a message", block({ statusCode: 0, message: "No." }), "EDGE_REJECTED"],
  ["failure with a key", block({ errorKey: "invalid_plan_type.x" }), "EDGE_PLAN"],
  ["success with an error's key", block({ success: true, errorKey: "odd.key" }), "EDGE_REJECTED"],
  ["success with an error's status", block({ success: true, statusCode: 403 }), "EDGE_FORBIDDEN"],
  ["success as a text", block({ statusCode: 0, success: "false" }), "EDGE_REJECTED"],
  ["a text", "Something failed.", "EDGE_MALFORMED"],
  ["a list", [], "EDGE_MALFORMED"],
  ["a key of another type", { statusCode: 0, success: false, message: null, errorKey: 5 }, "EDGE_REJECTED"],
];

interface Operation {
  readonly name: string;
  readonly call: (client: EdgeClient) => Promise<unknown>;
  /** The member that holds the status block. */
  readonly block: "errorResponse" | "error";
  readonly members: readonly [members: object, outcome: Outcome][];
}

const total = { total: 0, totalPages: 0, page: 0 };
const pageEnd = { hasMoreData: false, continuationToken: "" };

const OPERATIONS: readonly Operation[] = [
  {
    name: "search",
    call: (client) => client.searchEventLogs(lastHour),
    block: "errorResponse",
    members: [
      [{ rows: [], groups: null, ...total }, "result"],
      [{ rows: [], groups: [], ...total }, "result"],
      [{ rows: [], ...total }, "result"],
      [{ rows: [{}], ...total, total: 1, totalPages: 1 }, "result"],
      [{ rows: null, groups: null, ...total }, "EDGE_MALFORMED"],
      [{ rows: null, groups: [], ...total }, "EDGE_MALFORMED"],
      [{ rows: [], groups: [{}], ...total }, "EDGE_MALFORMED"],
      [{ rows: {}, ...total }, "EDGE_MALFORMED"],
      [{ rows: [] }, "EDGE_MALFORMED"],
      [{ rows: [], total: null }, "EDGE_MALFORMED"],
      [{ rows: [], total: -1 }, "EDGE_MALFORMED"],
      [{ Rows: [], Groups: null, Total: 0 }, "EDGE_MALFORMED"],
      [{ ...total }, "EDGE_MALFORMED"],
      [{}, "EDGE_MALFORMED"],
    ],
  },
  {
    name: "grouped search",
    call: (client) =>
      client.searchEventLogs({ ...lastHour, request: { ...lastHour.request, groupBy: ["ruleId"] } }),
    block: "errorResponse",
    members: [
      [{ rows: null, groups: [], ...total }, "result"],
      [{ rows: [], groups: [], ...total }, "result"],
      [{ groups: [{}], ...total, total: 1, totalPages: 1 }, "result"],
      [{ rows: null, groups: null, ...total }, "EDGE_MALFORMED"],
      [{ rows: [], groups: null, ...total }, "EDGE_MALFORMED"],
      [{ rows: [], ...total }, "EDGE_MALFORMED"],
      [{ rows: [{}], groups: [], ...total }, "EDGE_MALFORMED"],
      [{ groups: [] }, "EDGE_MALFORMED"],
      [{}, "EDGE_MALFORMED"],
    ],
  },
  {
    name: "list",
    call: (client) => client.listEventLogs(today),
    block: "errorResponse",
    members: [
      [{ logs: [], ...pageEnd, startToken: "" }, "result"],
      [{ logs: [{}], ...pageEnd, continuationToken: null }, "result"],
      [{ logs: [], hasMoreData: true, continuationToken: "t" }, "result"],
      [{ logs: null, ...pageEnd, startToken: null }, "EDGE_MALFORMED"],
      [{ logs: {}, ...pageEnd }, "EDGE_MALFORMED"],
      [{ logs: [] }, "EDGE_MALFORMED"],
      [{ logs: [], hasMoreData: null }, "EDGE_MALFORMED"],
      [{ logs: [], hasMoreData: "false" }, "EDGE_MALFORMED"],
      [{ Logs: [], HasMoreData: false }, "EDGE_MALFORMED"],
      [{ ...pageEnd }, "EDGE_MALFORMED"],
      [{}, "EDGE_MALFORMED"],
    ],
  },
  {
    name: "metrics",
    call: (client) => client.getRuleMetrics({ shieldZoneId: ZONE, ruleId: "942100" }),
    block: "error",
    members: [
      [{ data: { totalTriggers: 0, overviewPastTwentyEightDays: {} } }, "result"],
      [{ data: null }, "EDGE_MALFORMED"],
      [{ data: [] }, "EDGE_MALFORMED"],
      [{ Data: { totalTriggers: 0 } }, "EDGE_MALFORMED"],
      [{}, "EDGE_MALFORMED"],
    ],
  },
  {
    name: "recommendation",
    call: (client) => client.getRecommendation({ shieldZoneId: ZONE, ruleId: "942100" }),
    block: "errorResponse",
    members: [
      [{ shieldZoneId: ZONE, ruleId: "942100", success: true, recommendation: "Keep it." }, "result"],
      [{ shieldZoneId: ZONE, ruleId: "942100", success: false, recommendation: null }, "result"],
      [{ success: true, recommendation: 5 }, "EDGE_MALFORMED"],
      [{ success: true }, "EDGE_MALFORMED"],
      [{ Success: true, Recommendation: "Keep it." }, "EDGE_MALFORMED"],
      [{}, "EDGE_MALFORMED"],
    ],
  },
];

/** The status block alone, without any member of the operation. */
const BARE_BLOCKS: readonly [body: unknown, outcome: Outcome][] = [
  [{ statusCode: 202, success: false, ...NO_TEXTS }, "EDGE_REJECTED"],
  [{ statusCode: 0, success: false, ...NO_TEXTS }, "EDGE_MALFORMED"],
  [{ statusCode: 200, success: true, ...NO_TEXTS }, "EDGE_MALFORMED"],
  [{ statusCode: 403 }, "EDGE_FORBIDDEN"],
  [null, "EDGE_MALFORMED"],
  [[], "EDGE_MALFORMED"],
  ["rows", "EDGE_MALFORMED"],
  [0, "EDGE_MALFORMED"],
];

async function outcomeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
    return "result";
  } catch (thrown) {
    if (thrown instanceof EdgeError) return thrown.code;
    throw thrown;
  }
}

/** The block decides first, then the members, then the status. */
function expected(parts: readonly Outcome[]): Outcome {
  return (
    parts.find((part) => part !== "result" && part !== "EDGE_MALFORMED") ?? parts.find(isWrong) ?? "result"
  );
}

function isWrong(outcome: Outcome): boolean {
  return outcome !== "result";
}

test.for(OPERATIONS)(
  "$name: status, status block and members decide between result and error",
  async ({ name: operation, call, block: place, members }, { platform, open }) => {
    const { client } = open({ maxAttempts: 1 });
    const wrong: string[] = [];
    let results = 0;
    for (const [status, ofStatus] of statusesOf(operation))
      for (const [name, given, ofBlock] of BLOCKS)
        for (const [others, ofMembers] of members) {
          platform.reply(status, { ...others, ...(given === undefined ? {} : { [place]: given }) });
          const found = await outcomeOf(call(client));
          const wanted = expected([ofBlock, ofMembers, ofStatus]);
          if (wanted === "result") results++;
          if (found !== wanted)
            wrong.push(`${status}, ${name}, ${JSON.stringify(others)}: ${found}, not ${wanted}`);
        }
    expect(wrong).toEqual([]);
    const successes = statusesOf(operation).filter(([, outcome]) => outcome === "result").length;
    expect(results).toBe(5 * successes * members.filter(([, outcome]) => outcome === "result").length);
  },
);

test.for(OPERATIONS)(
  "$name: an answer without any member of the operation is an error",
  async ({ call }, { platform, open }) => {
    const { client } = open({ maxAttempts: 1 });
    const found: [unknown, string][] = [];
    for (const [body] of BARE_BLOCKS) {
      platform.reply(200, JSON.stringify(body));
      found.push([body, await outcomeOf(call(client))]);
    }
    expect(found).toEqual(BARE_BLOCKS);
    for (const [status, body] of [
      [200, ""],
      [200, " "],
      [204, ""],
      [202, ""],
      [200, "rows"],
      [200, "<html></html>"],
    ] as const) {
      platform.reply(status, body);
      expect([status, body, await outcomeOf(call(client))]).toEqual([status, body, "EDGE_MALFORMED"]);
    }
  },
);

const item = { Id: 1, Key: "k", Roles: [] };

test.for<[status: number, body: unknown, outcome: Outcome]>([
  [200, { Items: [item], CurrentPage: 1, TotalItems: 1, HasMoreItems: false }, "result"],
  [200, { Items: [], HasMoreItems: false }, "result"],
  [200, [item], "result"],
  [201, { Items: [item], HasMoreItems: false }, "result"],
  [206, { Items: [item], HasMoreItems: false }, "result"],
  [202, { Items: [item], CurrentPage: 1, TotalItems: 1, HasMoreItems: false }, "EDGE_MALFORMED"],
  [204, "", "EDGE_MALFORMED"],
  [200, "", "EDGE_MALFORMED"],
  [200, { Items: null, CurrentPage: 1, TotalItems: 0, HasMoreItems: false }, "EDGE_MALFORMED"],
  [200, { items: [item], currentPage: 1, totalItems: 1, hasMoreItems: false }, "EDGE_MALFORMED"],
  [200, { ITEMS: [item], HasMoreItems: false }, "EDGE_MALFORMED"],
  [200, { Items: [item] }, "EDGE_MALFORMED"],
  [200, { Items: [{ id: 1, key: "k" }], HasMoreItems: false }, "EDGE_MALFORMED"],
  [200, {}, "EDGE_MALFORMED"],
  [200, { statusCode: 202, success: false, ...NO_TEXTS }, "EDGE_REJECTED"],
])("key list: %j", async ([status, body, outcome], { platform, open }) => {
  platform.reply(status, body);
  expect(await outcomeOf(open({ maxAttempts: 1 }).client.listApiKeys({}))).toBe(outcome);
});

const FILE = "timestamp,logId\r\n1,a\r\n";

test.for<[status: number, body: string, outcome: Outcome]>([
  [200, FILE, "result"],
  [200, "timestamp,logId\r\n", "result"],
  [200, '"timestamp","logId"\r\n', "result"],
  [200, "timestamp\n", "result"],
  [200, "timestamp", "result"],
  [201, FILE, "result"],
  [202, FILE, "EDGE_MALFORMED"],
  [206, FILE, "result"],
  [204, "", "EDGE_MALFORMED"],
  [200, "", "EDGE_MALFORMED"],
  [200, "\r\n", "EDGE_MALFORMED"],
  [200, "1,a\r\n", "EDGE_MALFORMED"],
  [200, "timestamps,logId\r\n", "EDGE_MALFORMED"],
  [200, "OK", "EDGE_MALFORMED"],
  [200, '"Not now."', "EDGE_MALFORMED"],
  [200, "null", "EDGE_MALFORMED"],
  [200, "[]", "EDGE_MALFORMED"],
  [200, "{}", "EDGE_MALFORMED"],
  [200, '{"logs":[]}', "EDGE_MALFORMED"],
  [200, "<html></html>", "EDGE_MALFORMED"],
  [200, JSON.stringify(block({ statusCode: 0 })), "EDGE_MALFORMED"],
  [202, JSON.stringify(block({})), "EDGE_REJECTED"],
  [200, JSON.stringify({ errorResponse: block({ errorKey: "invalid_plan_type.x" }) }), "EDGE_PLAN"],
  [200, JSON.stringify({ error: block({ statusCode: 403 }) }), "EDGE_FORBIDDEN"],
])("export: %j", async ([status, body, outcome], { platform, open }) => {
  platform.reply(status, body, { "content-type": "text/csv" });
  const { client } = open({ maxAttempts: 1 });
  const read = async () => collect((await client.exportEventLogs(lastHour)).csv);
  expect(await outcomeOf(read())).toBe(outcome);
});

test.for([200, 201, 202, 204])(
  "an answer of %i without a body says nothing about a DNS zone's name",
  async (status, { platform, open }) => {
    const { client } = open({ maxAttempts: 1 });
    platform.reply(status, "");
    expect(await client.checkDnsZone({ Name: "a.test" })).toEqual({ Available: null });
    platform.reply(status === 204 ? 200 : status, "<html>Sign in</html>");
    expect(await outcomeOf(client.checkDnsZone({ Name: "a.test" }))).toBe("EDGE_MALFORMED");
  },
);

test.for(["9007199254740991", "9007199254740992", "9007199254740993", "9223372036854775807"])(
  "a total of %s is a number, with a warning if it was rounded",
  async (total, { platform, open }) => {
    const warnings: string[] = [];
    const { client } = open({ maxAttempts: 1, onWarning: (text) => warnings.push(text) });
    platform.reply(200, `{"rows":[],"groups":null,"total":${total},"totalPages":2147483647,"page":0}`);
    const { page } = await client.searchEventLogs(lastHour);
    expect(page.total).toBe(Number(total));
    expect(warnings).toHaveLength(total === "9007199254740991" ? 0 : 1);
  },
);
