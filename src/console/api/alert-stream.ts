import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import type { FeedEvent } from "../../http/feed/to-feed-event.ts";
import { areDesktopNoticesOn } from "../state/desktop-notices.ts";
import { useLive } from "../state/now.tsx";

const TOGETHER_MS = 300;
/** The queries that an alert's transition makes old. */
const CONCERNED = ["status", "alerts", "alert", "overview", "silences"];

/**
 * Follows the alerts while the tab is visible and live is on. A transition makes the pages read the alerts again, so
 * what they show has one source. A hidden tab holds no connection.
 */
export function useAlertStream(): void {
  const client = useQueryClient();
  const { isLive } = useLive();
  useEffect(() => {
    if (!isLive) return undefined;
    let source: EventSource | null = null;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const refresh = () => {
      clearTimeout(timer);
      timer = setTimeout(() => {
        for (const name of CONCERNED) void client.invalidateQueries({ queryKey: [name] });
      }, TOGETHER_MS);
    };
    const onAlert = ({ data }: MessageEvent<string>) => {
      refresh();
      notify(JSON.parse(data) as FeedEvent);
    };
    const follow = () => {
      const isWanted = document.visibilityState === "visible" || areDesktopNoticesOn();
      if (!isWanted) {
        source?.close();
        source = null;
      } else if (source === null || source.readyState === EventSource.CLOSED) {
        source = new EventSource("/api/v1/alerts/stream");
        source.addEventListener("alert", onAlert);
        source.addEventListener("reset", refresh);
      }
    };
    follow();
    // A refused stream is not opened again by the browser.
    const retry = setInterval(follow, 30_000);
    document.addEventListener("visibilitychange", follow);
    return () => {
      clearTimeout(timer);
      clearInterval(retry);
      document.removeEventListener("visibilitychange", follow);
      source?.close();
    };
  }, [client, isLive]);
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
