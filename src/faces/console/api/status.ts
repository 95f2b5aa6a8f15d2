import { useLive } from "../state/now.tsx";
import { type Output, useOperation } from "./ask.ts";

export type Zone = Output<"status.show">["zones"][number];

/** The current status. The header and several pages share the answer. */
export function useStatus() {
  const { isLive } = useLive();
  return useOperation("status.show", {}, { refetchInterval: isLive ? 15_000 : false });
}

/** Returns a function with the service's time, epoch ms: the clock of a viewer's machine may be wrong. */
export function useServerTime(): () => number {
  const { data, dataUpdatedAt } = useStatus();
  return () => (data === undefined ? Date.now() : Date.parse(data.now) + Date.now() - dataUpdatedAt);
}
