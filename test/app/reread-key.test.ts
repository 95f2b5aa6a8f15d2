import { writeFileSync } from "node:fs";
import path from "node:path";
import { inspect } from "node:util";
import { expect, test } from "vitest";
import { createKeyReader, rereadWhenRefused, watchEdge } from "#app/watch-edge.ts";
import { parseConfig, requireAccounts, requireEdge } from "#config/config.ts";
import { createEdgeClient } from "#platform/edge-client.ts";
import { createEdgeTransport } from "#platform/transport/transport.ts";
import { startReplyQueue } from "../platform/support/reply-queue.ts";
import { makeTemporaryFolder } from "../support/temporary-folder.ts";

const NOBODY = { answered: () => Promise.resolve(), refused: () => Promise.resolve() };

test("after a refusal the file of the key is read again, and a file that cannot be read changes nothing", async () => {
  const file = path.join(makeTemporaryFolder("key"), "key");
  writeFileSync(file, "old-key-4711\n");
  const platform = await startReplyQueue();
  const config = parseConfig({ EDGE_API_URL: platform.url, EDGE_API_KEY_FILE: file });
  const logged: string[] = [];
  const note = (_: unknown, event = "") => void logged.push(event);
  const transport = createEdgeTransport(requireEdge(config));
  try {
    const reread = createKeyReader(requireAccounts(config), { info: note, error: note } as never);
    const edge = watchEdge(createEdgeClient(transport), rereadWhenRefused(NOBODY, reread));
    const search = () => edge.searchEventLogs({ shieldZoneId: 101, request: { from: 1, to: 2 } });
    writeFileSync(file, "");
    platform.reply(401);
    await expect(search()).rejects.toMatchObject({ code: "EDGE_UNAUTHORIZED" });
    writeFileSync(file, "new-key-4712\n");
    platform.reply(401);
    await expect(search()).rejects.toMatchObject({ code: "EDGE_UNAUTHORIZED" });
    platform.reply(200, { rows: [], groups: null, total: 0, totalPages: 0, page: 0, errorResponse: null });
    await search();
    const keys = platform.requests.map(({ headers }) => headers["accesskey"]);
    expect(keys).toEqual(["old-key-4711", "old-key-4711", "new-key-4712"]);
    expect(logged).toEqual(["previous access key kept", "access key read again"]);
    expect(`${inspect(config.edge)} ${JSON.stringify(config.edge)} ${String(config.edge.key)}`).not.toContain(
      "4712",
    );
  } finally {
    await transport.close();
    await platform.close();
  }
});
