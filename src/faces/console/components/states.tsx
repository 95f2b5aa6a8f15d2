import { Button, Skeleton } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { toProblem } from "../api/problem.ts";
import { Icon } from "../look/icons.tsx";
import classes from "./states.module.css";

interface Props<Data> {
  readonly query: UseQueryResult<Data>;
  /** The rows of the skeleton that is shown the first time. */
  readonly rows?: number;
  /** The height of the skeleton in pixels, where the height of the data is known: values below it stay where they are. */
  readonly height?: number;
  /** The words after "asking": `30 days of 2 zones`. */
  readonly asking?: string;
  readonly children: (data: Data) => ReactNode;
}

/**
 * Shows a query in each of its states. Old data stays, dimmed, while new data is read. A skeleton is shown only the
 * first time. After a second the reader is told what is awaited and can cancel it.
 */
export function QueryView<Data>({ query, rows = 3, height, asking, children }: Props<Data>) {
  const { data, error, isFetching, isPlaceholderData } = query;
  const isWaiting = isFetching && (data === undefined || isPlaceholderData);
  const isLong = useLongerThan(1_000, isWaiting);
  const waiting = isLong ? <Waiting asking={asking} /> : null;
  if (data === undefined) {
    if (error !== null) return <ProblemBox thrown={error} onRetry={() => void query.refetch()} />;
    return (
      <div className={classes["skeleton"]} style={{ height }} aria-busy="true">
        {waiting}
        {Array.from({ length: rows }, (_, row) => (
          <Skeleton key={row} height={14} width={`${90 - ((row * 17) % 40)}%`} animate={false} />
        ))}
      </div>
    );
  }
  return (
    <>
      {error === null ? null : (
        <ProblemBox thrown={error} onRetry={() => void query.refetch()} note="The numbers below are older." />
      )}
      {waiting}
      <div className={isLong ? "lw-stale" : undefined} aria-busy={isWaiting}>
        {children(data)}
      </div>
    </>
  );
}

function useLongerThan(ms: number, isTrue: boolean): boolean {
  const [isLong, setLong] = useState(false);
  useEffect(() => {
    setLong(false);
    if (!isTrue) return undefined;
    const timer = setTimeout(() => setLong(true), ms);
    return () => clearTimeout(timer);
  }, [isTrue, ms]);
  return isLong && isTrue;
}

function Waiting({ asking = "the service" }: { readonly asking?: string | undefined }) {
  const client = useQueryClient();
  return (
    <p className={classes["waiting"]} role="status">
      Asking {asking} ...{" "}
      <Button
        variant="subtle"
        size="compact-xs"
        onClick={() => void client.cancelQueries({ type: "active", fetchStatus: "fetching" })}
      >
        Cancel
      </Button>
    </p>
  );
}

interface ProblemProps {
  readonly thrown: unknown;
  readonly onRetry?: () => void;
  readonly note?: string;
}

/** A failure beside its cause, in the API's words, with the way on. */
export function ProblemBox({ thrown, onRetry, note }: ProblemProps) {
  const { title, detail, mistakes, requestId, status } = toProblem(thrown);
  return (
    <div className={classes["problem"]} role="alert">
      <Icon name="warning" size={18} />
      <div>
        <strong>{status > 0 ? `${title} (${status})` : title}.</strong> {detail} {note}
        {mistakes.length > 1 ? (
          <ul className={classes["mistakes"]}>
            {mistakes.map(({ field, rule }) => (
              <li key={`${field} ${rule}`}>
                {field} {rule}
              </li>
            ))}
          </ul>
        ) : null}
        {requestId === null ? null : <div className={classes["request"]}>request {requestId}</div>}
      </div>
      {onRetry === undefined ? null : (
        <Button variant="default" onClick={onRetry}>
          Retry
        </Button>
      )}
    </div>
  );
}

/** Says why there is nothing, and what to do about it. */
export function Empty({ children, action }: { readonly children: ReactNode; readonly action?: ReactNode }) {
  return (
    <div className={classes["empty"]}>
      <div>{children}</div>
      {action}
    </div>
  );
}

/** A note above what is shown although a part is missing. */
export function Partial({ children }: { readonly children: ReactNode }) {
  return (
    <div className={classes["partial"]} role="status">
      <Icon name="warning" /> <div>{children}</div>
    </div>
  );
}
