import { toProblem } from "../api/problem.ts";
import { useStatus } from "../api/status.ts";
import { Ago } from "../components/ago.tsx";
import { ProblemBox } from "../components/states.tsx";

/** Says once, above every page, that the service does not answer, and how old the numbers are. */
export function Unreachable() {
  const { error, refetch, dataUpdatedAt } = useStatus();
  if (error === null || !toProblem(error).isPassing) return null;
  return (
    <>
      <ProblemBox thrown={error} onRetry={() => void refetch()} />
      {dataUpdatedAt === 0 ? null : (
        <p className="lw-dim" style={{ margin: "0 12px" }}>
          The last answer came <Ago at={dataUpdatedAt} />.
        </p>
      )}
    </>
  );
}
