import { useQueryClient } from "@tanstack/react-query";
import { useEffect } from "react";
import { useIsDown, useStatus } from "../api/status.ts";
import { Moment } from "../components/ago.tsx";
import { ProblemBox } from "../components/states.tsx";

/**
 * Says once, above every page, that the service does not answer, and how old the numbers are. When the service answers
 * again, all that failed meanwhile is read at once: its own turn may be minutes away.
 */
export function Unreachable() {
  const client = useQueryClient();
  const { error, refetch, dataUpdatedAt } = useStatus();
  const isDown = useIsDown();
  useEffect(() => {
    if (!isDown) return undefined;
    return () =>
      void client.refetchQueries({ type: "active", predicate: ({ state }) => state.status === "error" });
  }, [client, isDown]);
  if (!isDown) return null;
  return (
    <>
      <ProblemBox thrown={error} onRetry={() => void refetch()} />
      {dataUpdatedAt === 0 ? null : (
        <p className="lw-dim" style={{ margin: "0 12px" }}>
          The last answer came at <Moment at={dataUpdatedAt} seconds />. What is shown is of that time.
        </p>
      )}
    </>
  );
}
