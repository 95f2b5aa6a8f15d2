import { Progress } from "@mantine/core";
import type { CoverageRun } from "../../api/coverage.ts";
import { Payload } from "../../components/payload.tsx";
import classes from "./coverage.module.css";

interface Props {
  readonly run: CoverageRun;
  /** Work of the run; shown before the percentage. */
  readonly doing?: string;
}

/** How far a run without an end has come, and why its last start failed. */
export function RunProgress({ run: { state, percent, step, problem }, doing }: Props) {
  return (
    <>
      <div className={classes["progress"]}>
        <Progress value={percent} aria-label={`${percent} percent done`} />
        <span className="lw-note" role="status">
          {state === "waiting"
            ? "waits for its turn"
            : `${doing === undefined ? "" : `${doing}, `}${percent} %`}
          <Payload say=" · " prose text={step} />
        </span>
      </div>
      <div className="lw-across lw-warn">
        <Payload say="The last start failed and is repeated: " prose text={problem} />
      </div>
    </>
  );
}
