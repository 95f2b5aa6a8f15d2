import { describe, expect } from "vitest";
import { failure, listPage, test, today } from "./support/edge-test.ts";
import { block } from "./support/status-block.ts";

describe("every error body of the platform becomes one readable error", () => {
  test.for([
    {
      shape: "a legacy error",
      status: 400,
      body: { ErrorKey: "model.invalid", Field: "Hostname", Message: "The hostname is not valid." },
      error: { code: "EDGE_REJECTED", status: 400, errorKey: "model.invalid", field: "Hostname" },
      says: "The hostname is not valid.",
    },
    {
      shape: "a legacy error of a missing thing",
      status: 400,
      body: { ErrorKey: "pullZone.not_found", Field: null, Message: "No such zone." },
      error: { code: "EDGE_NOT_FOUND", errorKey: "pullZone.not_found", field: null },
      says: "No such zone.",
    },
    {
      shape: "problem details",
      status: 400,
      body: {
        type: "about:blank",
        title: "Bad Request",
        status: 400,
        detail: "The window is odd.",
        instance: null,
        traceId: "7",
      },
      error: { code: "EDGE_REJECTED", status: 400, errorKey: null },
      says: "The window is odd.",
    },
    {
      shape: "problem details with a map of errors",
      status: 400,
      body: {
        title: "One or more validation errors occurred.",
        status: 400,
        errors: { pageSize: ["Not an integer."] },
      },
      error: { code: "EDGE_REJECTED", field: "pageSize" },
      says: "pageSize: Not an integer.",
    },
    {
      shape: "an extended problem",
      status: 422,
      body: {
        title: "Validation Error",
        status: 422,
        detail: "Some are wrong.",
        instance: "/v3/apps/a",
        errors: [
          { message: "too small", field: "autoScaling.min" },
          { message: "no field", field: null },
        ],
        id: "a1B2",
      },
      error: { code: "EDGE_REJECTED", status: 422, field: "autoScaling.min" },
      says: "Some are wrong.; autoScaling.min: too small; no field",
    },
    {
      shape: "the second container problem",
      status: 404,
      body: {
        type: "about:blank",
        title: "Not Found",
        status: 404,
        detail: "Application not found.",
        instance: "/v3/apps/x",
      },
      error: { code: "EDGE_NOT_FOUND", status: 404 },
      says: "Application not found.",
    },
    {
      shape: "a bare status code",
      status: 401,
      body: { statusCode: 401 },
      error: { code: "EDGE_UNAUTHORIZED", status: 401 },
      says: "the access key was refused",
    },
    {
      shape: "a bare status code that knows better than HTTP",
      status: 500,
      body: { statusCode: 401 },
      error: { code: "EDGE_UNAUTHORIZED", status: 401 },
      says: "the access key was refused",
    },
    {
      shape: "a status block on top",
      status: 400,
      body: block({ statusCode: 400, message: "No such action." }),
      error: { code: "EDGE_REJECTED", status: 400 },
      says: "No such action.",
    },
    {
      shape: "a status block in errorResponse",
      status: 400,
      body: {
        rows: null,
        errorResponse: block({ statusCode: 400, message: "Too many filters.", errorKey: "invalid.filters" }),
      },
      error: { code: "EDGE_REJECTED", errorKey: "invalid.filters" },
      says: "Too many filters.",
    },
    {
      shape: "a status block in error",
      status: 400,
      body: { data: null, error: block({ statusCode: 400, errorKey: "not_found.waf_rule" }) },
      error: { code: "EDGE_NOT_FOUND", errorKey: "not_found.waf_rule" },
      says: "HTTP 400 without an explanation",
    },
    {
      shape: "an array of messages",
      status: 400,
      body: [{ message: "first" }, { message: "second" }],
      error: { code: "EDGE_REJECTED" },
      says: "first; second",
    },
    {
      shape: "a JSON string",
      status: 409,
      body: '"the app is busy"',
      error: { code: "EDGE_REJECTED", status: 409 },
      says: "the app is busy",
    },
    {
      shape: "plain text",
      status: 400,
      body: "Bad Gateway-ish",
      error: { code: "EDGE_REJECTED" },
      says: "Bad Gateway-ish",
    },
    {
      shape: "an HTML page",
      status: 403,
      body: "<!DOCTYPE html><html><head><title>403 Forbidden</title></head><body>secret wall</body></html>",
      error: { code: "EDGE_FORBIDDEN", status: 403 },
      says: "an HTML page: 403 Forbidden",
    },
    {
      shape: "nothing",
      status: 404,
      body: "",
      error: { code: "EDGE_NOT_FOUND", status: 404 },
      says: "not found",
    },
    {
      shape: "JSON null",
      status: 400,
      body: "null",
      error: { code: "EDGE_REJECTED" },
      says: "HTTP 400 without an explanation",
    },
  ])("$shape", async ({ status, body, error, says }, { platform, edge }) => {
    platform.reply(status, body, { "cdn-requestid": "req-1" });
    const thrown = await failure(
      edge.client.setHostnameKeyType({ pullZoneId: 5, request: { Hostname: "a.test", KeyType: 0 } }),
    );
    expect(thrown).toMatchObject({
      ...error,
      requestId: "req-1",
      operation: "set-hostname-key-type",
      disposition: "give-up",
    });
    expect(thrown.message).toContain(says);
    expect(platform.requests).toHaveLength(1);
  });
});

describe("credentials or request", () => {
  test("a 401 with a key is a rejected request: the day is outside the window", async ({
    platform,
    edge,
  }) => {
    const errorResponse = block({
      statusCode: 401,
      message: "Only 3 days.",
      errorKey: "invalid_datetime_window.event_logs",
    });
    platform.reply(401, listPage({ logs: null, continuationToken: null, startToken: null, errorResponse }));
    const thrown = await failure(edge.client.listEventLogs(today));
    expect(thrown).toMatchObject({
      code: "EDGE_WINDOW",
      status: 401,
      errorKey: "invalid_datetime_window.event_logs",
    });
  });

  test("a 401 with any other key is a rejected request too", async ({ platform, edge }) => {
    platform.reply(
      401,
      listPage({ logs: null, errorResponse: block({ statusCode: 401, errorKey: "odd.thing" }) }),
    );
    expect((await failure(edge.client.listEventLogs(today))).code).toBe("EDGE_REJECTED");
  });

  test.for([
    { when: "401 with bare problem details", status: 401, body: { title: "Unauthorized", status: 401 } },
    { when: "401 without a body", status: 401, body: "" },
    {
      when: "401 with the denied message",
      status: 401,
      body: { Message: "Authorization has been denied for this request." },
    },
    {
      when: "500 with the denied message",
      status: 500,
      body: { Message: "Authorization has been denied for this request." },
    },
  ])("$when means the access key", async ({ status, body }, { platform, edge }) => {
    platform.reply(status, body);
    const thrown = await failure(edge.client.listApiKeys({}));
    expect(thrown).toMatchObject({ code: "EDGE_UNAUTHORIZED", status, disposition: "give-up" });
    expect(platform.requests).toHaveLength(1);
  });
});

test("a redirect is not followed, so the key stays with the host it belongs to", async ({
  platform,
  edge,
}) => {
  platform.reply(302, "", { location: `${platform.url}/elsewhere` });
  expect(await failure(edge.client.listApiKeys({}))).toMatchObject({ code: "EDGE_REJECTED", status: 302 });
  expect(platform.requests).toHaveLength(1);
});

test("a huge, hostile message is cut, put on one line and its control characters are spelled out", async ({
  platform,
  edge,
}) => {
  const Message = `\u001b[31mred\u0007\r\n\u202egnp.exe\u0000${"x".repeat(100_000)}`;
  platform.reply(400, { ErrorKey: "a\u001bb", Field: "f\u2066", Message });
  const thrown = await failure(edge.client.listApiKeys({}));
  expect(thrown.message).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  expect(thrown.message).toContain("\\u001b[31mred\\u0007\\u000d\\u000a\\u202egnp.exe\\u0000");
  expect(thrown.message.length).toBeLessThan(800);
  expect(thrown).toMatchObject({ errorKey: "a\\u001bb", field: "f\\u2066" });
});
