import { useDocumentVisibility } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { FeedEvent } from "#faces/http/feed/feed.ts";
import { areDesktopNoticesOn } from "../state/desktop-notices.ts";
import { useLive } from "../state/now.tsx";
import { refreshSubject } from "./ask.ts";
import { followStream } from "./follow-stream.ts";

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
