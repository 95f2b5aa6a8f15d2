import { send } from "./client.ts";
import { ApiProblem } from "./problem.ts";

const RETRY_MS = 3_000;
const RETRY_REFUSED_MS = 30_000;

interface FollowOptions {
  readonly signal: AbortSignal;
  readonly onEvent: (name: string, data: string) => void;
  /** Called when the connection ended, or there was none. */
  readonly onEnd: () => void;
}

/**
 * Follows the events of a stream until the signal, and connects again after the last event. An EventSource cannot send
 * the header that a session needs.
 */
export async function followStream(path: string, { signal, onEvent, onEnd }: FollowOptions): Promise<void> {
  let lastId = "";
  const onBlock = (block: string) => {
    const fields = Object.fromEntries(
      block.split("\n").map((line) => {
        const colon = line.indexOf(": ");
        return [line.slice(0, Math.max(colon, 0)), line.slice(colon + 2)];
      }),
    );
    lastId = fields["id"] ?? lastId;
    if (fields["event"] !== undefined) onEvent(fields["event"], fields["data"] ?? "");
  };
  while (!signal.aborted) {
    let waitMs = RETRY_MS;
    try {
      const headers: Record<string, string> = lastId === "" ? {} : { "last-event-id": lastId };
      await readBlocks(await send(path, { signal, headers }), onBlock);
    } catch (thrown) {
      if (thrown instanceof ApiProblem && thrown.status > 0) waitMs = RETRY_REFUSED_MS;
    }
    if (signal.aborted) return;
    onEnd();
    await new Promise((resolve) => setTimeout(resolve, waitMs));
  }
}

async function readBlocks({ body }: Response, onBlock: (block: string) => void): Promise<void> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (let read = await reader?.read(); read?.done === false; read = await reader?.read()) {
    const blocks = (text + decoder.decode(read.value, { stream: true })).split("\n\n");
    text = blocks.pop() ?? "";
    blocks.forEach(onBlock);
  }
}
