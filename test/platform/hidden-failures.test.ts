import { describe, expect } from "vitest";
import { failure, lastHour, listPage, test, today, ZONE } from "./support/edge-test.ts";
import { block } from "./support/status-block.ts";

describe("failures that look like successes", () => {
  test.for([
    { errorKey: "not_found_or_unauthorised_access.shieldzone", code: "EDGE_NOT_FOUND" },
    { errorKey: "limit_reached.ai_recommendation", code: "EDGE_PLAN" },
    { errorKey: "invalid_plan_type.bot_detection", code: "EDGE_PLAN" },
    { errorKey: "feature_not_available_on_plan", code: "EDGE_PLAN" },
    { errorKey: "something.else", code: "EDGE_REJECTED" },
  ])("a 202 with $errorKey is $code", async ({ errorKey, code }, { platform, edge }) => {
    const errorResponse = block({ message: "No.", errorKey });
    platform.reply(202, {
      shieldZoneId: 0,
      ruleId: null,
      success: false,
      recommendation: null,
      errorResponse,
    });
    const thrown = await failure(edge.client.getRecommendation({ shieldZoneId: ZONE, ruleId: "942100" }));
    expect(thrown).toMatchObject({ code, errorKey, status: 202, disposition: "give-up" });
  });

  test("a 200 whose block has a status of its own carries that status", async ({ platform, edge }) => {
    platform.reply(200, { data: null, error: block({ statusCode: 403, message: "Not on this plan." }) });
    const thrown = await failure(edge.client.getRuleMetrics({ shieldZoneId: ZONE, ruleId: "942100" }));
    expect(thrown).toMatchObject({ code: "EDGE_FORBIDDEN", status: 403 });
  });

  test("a 200 that is the status block itself is a failure", async ({ platform, edge }) => {
    platform.reply(200, block({ statusCode: 400, message: "Odd.", errorKey: null }));
    expect(await failure(edge.client.searchEventLogs(lastHour))).toMatchObject({
      code: "EDGE_REJECTED",
      status: 400,
    });
  });

  test("a block with nothing but an error status is not read as an empty day", async ({ platform, edge }) => {
    platform.reply(200, listPage({ logs: null, errorResponse: block({ statusCode: 403 }) }));
    expect(await failure(edge.client.listEventLogs(today))).toMatchObject({ code: "EDGE_FORBIDDEN" });
  });

  test("a failed write that answers 202 with a filled block is a failure", async ({ platform, edge }) => {
    platform.reply(202, block({ message: "Not now.", errorKey: "busy" }));
    const call = edge.client.setHostnameKeyType({
      pullZoneId: 5,
      request: { Hostname: "a.test", KeyType: 1 },
    });
    expect(await failure(call)).toMatchObject({ code: "EDGE_REJECTED", errorKey: "busy" });
  });

  test.for([
    { when: "the default block", errorResponse: block({ statusCode: 0 }) },
    {
      when: "the default block with empty texts",
      errorResponse: block({ statusCode: 0, message: "", errorKey: "" }),
    },
    {
      when: "success true with a message",
      errorResponse: block({ statusCode: 200, success: true, message: "Done." }),
    },
    { when: "null", errorResponse: null },
    { when: "absent", errorResponse: undefined },
  ])("an errorResponse that is $when is no failure", async ({ errorResponse }, { platform, edge }) => {
    platform.reply(200, listPage({ errorResponse }));
    expect((await edge.client.listEventLogs(today)).page.logs).toEqual([]);
  });

  test("a recommendation that did not succeed and says nothing is an answer, not an error", async ({
    platform,
    edge,
  }) => {
    platform.reply(200, {
      shieldZoneId: ZONE,
      ruleId: "1",
      success: false,
      recommendation: null,
      errorResponse: block({ statusCode: 0 }),
    });
    const answer = await edge.client.getRecommendation({ shieldZoneId: ZONE, ruleId: "1" });
    expect(answer).toMatchObject({ success: false, recommendation: null });
  });
});
