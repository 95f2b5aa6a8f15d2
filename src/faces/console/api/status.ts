import { useLive } from "../state/now.tsx";
import { ask, type Output, useOperation } from "./ask.ts";
import { toProblem } from "./problem.ts";

export type Zone = Output<"status.show">["zones"][number];

/** The status is read within milliseconds. Without a limit, a request over a lost network would wait for minutes. */
const TIMEOUT_MS = 8_000;
const DOWN_RETRY_MS = 3_000;

/** The current status. The header and several pages share the answer. */
export function useStatus() {
  const { isLive } = useLive();
  return useOperation(
    "status.show",
    {},
    {
      queryFn: ({ signal }) =>
        ask("status.show", {}, { signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]) }),
      refetchInterval: ({ state }) => (state.status === "error" ? DOWN_RETRY_MS : isLive && 15_000),
    },
  );
}

/** Returns whether the service does not answer, so that everything shown is as old as its last answer. */
export function useIsDown(): boolean {
  const { error } = useStatus();
  return error !== null && toProblem(error).isPassing;
}

/** Returns a function with the service's time, epoch ms: the clock of a viewer's machine may be wrong. */
export function useServerTime(): () => number {
  const { data, dataUpdatedAt } = useStatus();
  return () => (data === undefined ? Date.now() : Date.parse(data.now) + Date.now() - dataUpdatedAt);
}
