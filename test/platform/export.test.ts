import zlib from "node:zlib";
import { describe, expect } from "vitest";
import { collect } from "./support/collect.ts";
import { failure, lastHour, test } from "./support/edge-test.ts";
import { createSignal } from "./support/signal.ts";

async function text(chunks: AsyncIterable<Buffer>): Promise<string> {
  return Buffer.concat(await collect(chunks)).toString();
}

describe("an export", () => {
  test.for([
    { type: "text/csv", body: "timestamp,ip\n1,203.0.113.9\n" },
    { type: "application/json", body: "timestamp,ip\n1,203.0.113.9\n" },
    { type: "text/csv", body: '\ufeff"timestamp","ip"\r\n' },
    { type: "text/csv", body: "timestamp" },
  ])("labelled $type is handed on byte for byte", async ({ type, body }, { platform, edge }) => {
    platform.reply(200, body, { "content-type": type, "cdn-requestid": "r" });
    const { csv, requestId } = await edge.client.exportEventLogs(lastHour);
    expect(await text(csv)).toBe(body);
    expect(requestId).toBe("r");
  });

  test("comes while it is still being written, and unpacked", async ({ platform, edge }) => {
    const more = createSignal();
    platform.handle(async (response) => {
      response.writeHead(200, { "content-encoding": "gzip" });
      const gzip = zlib.createGzip();
      gzip.pipe(response);
      gzip.write("timestamp\n");
      gzip.flush();
      await more.given;
      gzip.end("1\n");
    });
    const { csv } = await edge.client.exportEventLogs(lastHour);
    expect((await csv.next()).value?.toString()).toBe("timestamp\n");
    more.give();
    expect(await text(csv)).toBe("1\n");
  });

  test("refused with a body labelled text/csv is an error", async ({ platform, edge }) => {
    platform.reply(
      400,
      { title: "Bad Request", status: 400, detail: "Too wide." },
      { "content-type": "text/csv" },
    );
    expect((await failure(edge.client.exportEventLogs(lastHour))).message).toContain("Too wide.");
  });

  test("refused with 202 and a filled block is an error", async ({ platform, edge }) => {
    const errorResponse = {
      statusCode: 202,
      success: false,
      message: "No plan.",
      errorKey: "invalid_plan_type.export",
    };
    platform.reply(202, { errorResponse }, { "content-type": "text/csv" });
    expect(await failure(edge.client.exportEventLogs(lastHour))).toMatchObject({ code: "EDGE_PLAN" });
  });

  test("that is an HTML page is malformed and asked for again", async ({ platform, edge }) => {
    platform.reply(200, "\n<html></html>");
    platform.reply(200, "timestamp\n");
    expect(await text((await edge.client.exportEventLogs(lastHour)).csv)).toBe("timestamp\n");
  });

  test("cut on the way fails instead of ending early, and is not begun again", async ({ platform, edge }) => {
    platform.handle((response) => {
      response.writeHead(200, { "content-type": "text/csv" });
      response.write("timestamp\n1\n", () => setImmediate(() => response.destroy()));
    });
    const call = async () => text((await edge.client.exportEventLogs(lastHour)).csv);
    expect(await failure(call())).toMatchObject({ code: "EDGE_NETWORK" });
    expect(platform.requests).toHaveLength(1);
  });

  test("that falls silent ends at the idle limit", async ({ platform, edge }) => {
    platform.handle((response) => void response.writeHead(200).write("timestamp\n"));
    const limits = { idleTimeoutMs: 100, timeoutMs: null };
    const { csv } = await edge.client.exportEventLogs({ ...lastHour, limits });
    expect(await failure(text(csv))).toMatchObject({ code: "EDGE_TIMEOUT", disposition: "retry" });
  });

  test("that drips on ends at its total limit when it has one", async ({ platform, edge }) => {
    platform.handle((response) => {
      response.writeHead(200).write("timestamp\n");
      const timer = setInterval(() => response.write("1\n"), 5);
      response.on("close", () => clearInterval(timer));
    });
    const limits = { idleTimeoutMs: 5_000, timeoutMs: 150 };
    const { csv } = await edge.client.exportEventLogs({ ...lastHour, limits });
    expect(await failure(text(csv))).toMatchObject({ code: "EDGE_TIMEOUT" });
  });

  test("closes the connection when its reader stops early", async ({ platform, edge }) => {
    const closed = createSignal();
    platform.handle((response) => {
      response.on("close", () => closed.give());
      response.writeHead(200).write("timestamp\n");
    });
    const { csv } = await edge.client.exportEventLogs(lastHour);
    for await (const chunk of csv) {
      expect(chunk.toString()).toBe("timestamp\n");
      break;
    }
    await closed.given;
  });

  test("ended by its caller throws the caller's reason", async ({ platform, edge }) => {
    platform.handle((response) => void response.writeHead(200).write("timestamp\n"));
    const controller = new AbortController();
    const { csv } = await edge.client.exportEventLogs(lastHour, controller.signal);
    await csv.next();
    controller.abort(new Error("enough"));
    await expect(csv.next()).rejects.toThrow("enough");
  });
});
