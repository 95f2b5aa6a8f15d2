import { keepPreviousData, useQuery } from "@tanstack/react-query";
import type { StatusAnswer } from "#faces/http/routes/v1/status.ts";
import { useLive } from "../state/now.tsx";
import { call } from "./client.ts";

export type Zone = StatusAnswer["zones"][number];

/** The current status. The header and several pages share the answer. */
export function useStatus() {
  const { isLive } = useLive();
  return useQuery({
    queryKey: ["status"],
    queryFn: ({ signal }) => call<StatusAnswer>("/api/v1/status", { signal }),
    refetchInterval: isLive ? 15_000 : false,
    placeholderData: keepPreviousData,
  });
}

/** Returns a function with the service's time, epoch ms: the clock of a viewer's machine may be wrong. */
export function useServerTime(): () => number {
  const { data, dataUpdatedAt } = useStatus();
  return () => (data === undefined ? Date.now() : Date.parse(data.now) + Date.now() - dataUpdatedAt);
}
