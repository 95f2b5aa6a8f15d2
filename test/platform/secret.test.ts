import { inspect } from "node:util";
import { describe, expect } from "vitest";
import { UsageError } from "#lib/errors.ts";
import { createSecret } from "#lib/secret.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { ACCESS_KEY, failure, listPage, test, today } from "./support/edge-test.ts";

/** Everything a logger could get hold of. */
function everything(error: Error): string {
  return [
    String(error),
    error.stack,
    inspect(error, { depth: 10, showHidden: true }),
    JSON.stringify(error),
  ].join("\n");
}

describe("the access key is never in an error", () => {
  test.for<{ when: string; status: number; body: unknown; headers?: Record<string, string> }>([
    {
      when: "the message echoes it",
      status: 400,
      body: { ErrorKey: `bad.${ACCESS_KEY}`, Field: ACCESS_KEY, Message: `key ${ACCESS_KEY} refused` },
    },
    { when: "an HTML page echoes it", status: 502, body: `<title>${ACCESS_KEY}</title>` },
    { when: "it stands where the message is cut", status: 400, body: `${"x".repeat(385)}${ACCESS_KEY}` },
    { when: "the request id echoes it", status: 404, body: "", headers: { "cdn-requestid": ACCESS_KEY } },
  ])("when $when", async ({ status, body, headers }, { platform, open }) => {
    platform.reply(status, body, headers);
    const thrown = await failure(open({ maxAttempts: 1 }).client.listApiKeys({}));
    expect(everything(thrown)).not.toContain(ACCESS_KEY);
    expect(everything(thrown)).not.toContain(ACCESS_KEY.slice(0, 12));
  });

  test("when the HTTP parser chokes on an answer that echoes it", async ({ platform, open }) => {
    platform.handle(
      (response) => void response.socket?.end(`HTTP/1.1 200 OK\r\nBad Header ${ACCESS_KEY}\r\n\r\n`),
    );
    const thrown = await failure(open({ maxAttempts: 1 }).client.listApiKeys({}));
    expect(thrown.code).toBe("EDGE_NETWORK");
    expect(everything(thrown)).not.toContain(ACCESS_KEY);
  });

  test("when the answer has another shape and holds other people's keys", async ({ platform, open }) => {
    platform.reply(200, { Items: [{ Id: "x", Key: "their-key" }] });
    const thrown = await failure(open({ maxAttempts: 1 }).client.listApiKeys({}));
    expect(thrown.code).toBe("EDGE_MALFORMED");
    expect(everything(thrown)).not.toContain("their-key");
  });
});

test("neither transport nor client prints it", async ({ platform, edge }) => {
  platform.reply(200, listPage());
  await edge.client.listEventLogs(today);
  expect(inspect(edge.transport, { depth: 10, showHidden: true })).not.toContain(ACCESS_KEY);
  expect(inspect(edge.client, { depth: 10, showHidden: true })).not.toContain(ACCESS_KEY);
});

test.for([
  { baseUrl: "ftp://user:hunter2@a.test", accessKey: "two words" },
  { baseUrl: "https://user:hunter2@a.test", accessKey: "line\nbreak" },
  { baseUrl: "https://a.test/?hunter2", accessKey: "" },
])(
  "a connection that cannot work is refused at once with both mistakes, showing neither key nor password",
  ({ baseUrl, accessKey }) => {
    const create = () => createEdgeTransport({ baseUrl, accessKey: createSecret(accessKey) });
    expect(create).toThrow(UsageError);
    try {
      create();
    } catch (error) {
      expect((error as UsageError).mistakes).toHaveLength(2);
      expect((error as UsageError).message).not.toMatch(/hunter2|two words|line/);
    }
  },
);
