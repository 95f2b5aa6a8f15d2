import classes from "./severity.module.css";

const MARKS: Readonly<Record<string, string>> = { critical: "●", error: "▲", warning: "◆", info: "○" };

/** Severity and state as a sign and a word. Only what fires is red. */
export function Severity({ severity, state }: { readonly severity: string; readonly state?: string }) {
  const isOver = state === "resolved";
  return (
    <span className={classes["severity"]} data-severity={isOver ? "over" : severity} data-state={state}>
      <span aria-hidden="true">{isOver ? "○" : (MARKS[severity] ?? "○")}</span> {severity}
      {state === undefined ? null : <span className={classes["state"]}>{state}</span>}
    </span>
  );
}
