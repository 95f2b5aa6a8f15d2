import { Progress } from "@mantine/core";
import type { CoverageRun } from "../../api/coverage.ts";
import { Payload } from "../../components/payload.tsx";
import classes from "./coverage.module.css";

interface RunProgressProps {
  readonly run: CoverageRun;
  /** What the run does; shown before the percentage. */
  readonly doing?: string;
}

/** How far a run without an end has come. */
export function RunProgress({ run: { state, percent, step }, doing }: RunProgressProps) {
  return (
    <div className={classes["progress"]}>
      <Progress value={percent} aria-label={`${percent} percent done`} />
      <span className="lw-note" role="status">
        {state === "waiting"
          ? "waits for its turn"
          : `${doing === undefined ? "" : `${doing}, `}${percent} %`}
        {step === null ? null : (
          <>
            {" · "}
            <Payload prose text={step} />
          </>
        )}
      </span>
    </div>
  );
}
