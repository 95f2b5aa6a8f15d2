/** The states of a query: loading, failed, empty and partial. */
import { Box, Button, Skeleton, Stack } from "@mantine/core";
import { type UseQueryResult, useQueryClient } from "@tanstack/react-query";
import { type ReactNode, useEffect, useState } from "react";
import { many } from "#lib/format.ts";
import { toProblem } from "../api/client.ts";
import type { Completeness as Counts, OfZones } from "../api/of-zones.ts";
import { zoneTitle } from "../state/zones.ts";
import { Icon } from "../style/icons.tsx";
import { SubtleButton } from "./buttons.tsx";
import classes from "./states.module.css";

export interface QueryProps<Data> {
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
 * first time. After a second the reader sees what is awaited and can cancel it.
 */
export function QueryView<Data>({ query, rows = 3, height, asking, children }: QueryProps<Data>) {
  const { data, error, isFetching, isPlaceholderData } = query;
  const isWaiting = isFetching && (data === undefined || isPlaceholderData);
  const isLong = useLongerThan(1_000, isWaiting);
  const retry = () => void query.refetch();
  const waiting = isLong ? <Waiting asking={asking} /> : null;
  if (data === undefined) {
    if (error !== null) return <ProblemBox thrown={error} onRetry={retry} />;
    return (
      <Stack gap={12} p={12} h={height} aria-busy="true">
        {waiting}
        {Array.from({ length: rows }, (_, row) => (
          <Skeleton key={row} height={14} width={`${90 - ((row * 17) % 40)}%`} animate={false} />
        ))}
      </Stack>
    );
  }
  return (
    <>
      <ProblemBox thrown={error} onRetry={retry} note="The numbers below are older." />
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
    <div className={`lw-hint ${classes["waiting"]}`} role="status">
      Asking {asking} ...{" "}
      <Button
        variant="subtle"
        size="compact-xs"
        onClick={() => void client.cancelQueries({ type: "active", fetchStatus: "fetching" })}
      >
        Cancel
      </Button>
    </div>
  );
}

interface ProblemProps {
  /** Null shows nothing. */
  readonly thrown: unknown;
  readonly onRetry?: () => void;
  readonly note?: string;
}

/** A failure beside its cause, in the API's words, with the way on. */
export function ProblemBox({ thrown, onRetry, note }: ProblemProps) {
  if (thrown === null) return null;
  const { title, detail, mistakes, requestId, status } = toProblem(thrown);
  return (
    <div className={classes["problem"]} role="alert">
      <Icon name="warning" size={18} />
      <div>
        <strong>{status > 0 ? `${title} (${status})` : title}.</strong> {detail} {note}
        {mistakes.length > 1 ? (
          <Box component="ul" my={4} pl={18}>
            {mistakes.map(({ field, rule }) => (
              <li key={`${field} ${rule}`}>
                {field} {rule}
              </li>
            ))}
          </Box>
        ) : null}
        {requestId === null ? null : <div className="lw-dim lw-mono">request {requestId}</div>}
      </div>
      {onRetry === undefined ? null : <SubtleButton word="Retry" onClick={onRetry} />}
    </div>
  );
}

/** Says why there is nothing, and what to do about it. */
export function Empty({ children, action }: { readonly children: ReactNode; readonly action?: ReactNode }) {
  return (
    <Stack gap={8} px={12} py={20} align="start" className="lw-dim">
      <div>{children}</div>
      {action}
    </Stack>
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

interface FailedProps {
  readonly of: OfZones<unknown>["failed"] | undefined;
  /** Data that is missing because of them. */
  readonly say: string;
}

/** Names the zones that did not answer, and why. */
export function FailedZones({ of = [], say }: FailedProps) {
  if (of.length === 0) return null;
  const problems = of.map(({ zone, problem }) => `${zoneTitle(zone)}: ${problem.message}`);
  return (
    <Partial>
      {say} {problems.join(" ")}
    </Partial>
  );
}

interface Props {
  /** Undefined while they are not known; then nothing is shown. */
  readonly of: Counts | undefined;
  /** Over so many zones the hours are counted: 24 hours of 2 zones are 48. */
  readonly zones: number;
}

/** Whether the numbers before it are complete: ` · 70 of 72 hours sealed, 2 open`. */
export function Completeness({ of, zones }: Props) {
  if (of === undefined) return null;
  const { sealed, searched, open, gap, imported, unwatched } = of;
  const hours = sealed + searched + open + gap + imported;
  if (hours === 0) return <span> · no hour is decided yet</span>;
  const rest = Object.entries({ searched, open, imported, "before the first": unwatched }).filter(
    ([, count]) => count > 0,
  );
  return (
    <span>
      {" "}
      · {sealed} of {many(hours, "hour")}
      {zones > 1 ? ` of ${zones} zones` : ""} sealed
      {rest.map(([word, count]) => `, ${count} ${word}`)}
      {gap > 0 ? <span className="lw-fire">, {many(gap, "gap")}: counts are too low</span> : null}
    </span>
  );
}
