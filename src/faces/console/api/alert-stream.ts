/** Follows the stream of alerts. */
import { useDocumentVisibility } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { FeedEvent } from "#faces/http/feed/feed.ts";
import { areDesktopNoticesOn } from "../state/browser.ts";
import { useLive } from "../state/now.tsx";
import { refreshSubject } from "./ask.ts";
import { ApiProblem, send } from "./client.ts";

const TOGETHER_MS = 300;

/**
 * Follows the alerts while the tab is visible and live is on. A transition makes the pages read the alerts again, so
 * what they show has one source. A hidden tab holds no connection.
 */
export function useAlertStream(): void {
  const client = useQueryClient();
  const { isLive } = useLive();
  const isWanted = useDocumentVisibility() === "visible" || areDesktopNoticesOn();
  useEffect(() => {
    if (!isLive || !isWanted) return undefined;
    const following = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    // The stream has alerts and, after a gap, resets.
    const onEvent = (name: string, data: string) => {
      clearTimeout(timer);
      timer = setTimeout(() => void refreshSubject(client, "alerts"), TOGETHER_MS);
      if (name === "alert") notify(JSON.parse(data) as FeedEvent);
    };
    // The end of the stream is the first sign that the service does not answer.
    const onEnd = () =>
      void client.invalidateQueries({ queryKey: ["status.show"] }, { cancelRefetch: false });
    void followStream("/api/v1/alerts/stream", { signal: following.signal, onEvent, onEnd });
    return () => {
      clearTimeout(timer);
      following.abort();
    };
  }, [client, isLive, isWanted]);
}

function notify({ alertId, transition, headline, severity, state }: FeedEvent): void {
  if (transition !== 1 || state !== "firing" || !areDesktopNoticesOn()) return;
  const notice = new Notification(`${severity ?? "alert"}: ${headline ?? `alert ${alertId}`}`.slice(0, 200), {
    tag: `longwatch-${alertId}`,
  });
  notice.addEventListener("click", () => {
    globalThis.focus();
    globalThis.location.assign(`/alerts/${alertId}`);
  });
}

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
async function followStream(path: string, { signal, onEvent, onEnd }: FollowOptions): Promise<void> {
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
