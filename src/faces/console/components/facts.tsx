/** Small parts of every page: names with values, times, severities and actions. */

import { Box } from "@mantine/core";
import { Fragment, type ReactNode, useMemo } from "react";
import { stripMarkdown } from "#lib/strip-markdown.ts";
import { classifyAction, createActionStates } from "#model/action-class.ts";
import { useSession } from "../api/session.ts";
import { useNow } from "../state/now.tsx";
import { ACTION_COLOURS, formatAgo, formatMoment, formatUtc, isInUtc } from "../style/words.ts";
import { Payload } from "./payload.tsx";
import classes from "./severity.module.css";
import { Empty } from "./states.tsx";

/** A value with the words before it. Without a value nothing is shown. */
export function Fact({ say, children }: { readonly say: string; readonly children: ReactNode }) {
  return children === null ? null : (
    <span>
      {say} <b>{children}</b>
    </span>
  );
}

export type Pair = readonly [name: ReactNode, value: ReactNode];

/** Names and values, a pair in each line. */
export function Pairs({ of }: { readonly of: readonly Pair[] }) {
  return (
    <dl className="lw-pairs">
      {of.map(([name, value], index) => (
        <Fragment key={`${index}`}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </Fragment>
      ))}
    </dl>
  );
}

interface Props<One> {
  readonly of: readonly One[];
  /** Shown if there is no item. */
  readonly none?: ReactNode;
  /** Makes the row of an item, a list item with a key. */
  readonly children: (one: One) => ReactNode;
}

/** A list with a row for each item. */
export function Rows<One>({ of, none, children }: Props<One>) {
  if (of.length === 0 && none !== undefined) return <Empty>{none}</Empty>;
  return <ul className="lw-rows">{of.map((one) => children(one))}</ul>;
}

interface TimeProps {
  /** Without a time nothing is shown. */
  readonly at: string | number | null;
  /** The words before the time. */
  readonly say?: string;
}

/** A time as its age. The exact time, here and in UTC, is in its title. */
export function Ago({ at, say }: TimeProps) {
  const shownMs = useNow();
  if (at === null) return null;
  const atMs = toMs(at);
  // The page's time moves in steps: what has happened since the last one is not in the future.
  const nowMs = Math.max(shownMs, Math.min(atMs, Date.now()));
  const exact = `${formatMoment(atMs, { seconds: true })} ${isInUtc() ? "UTC" : `here, ${formatUtc(atMs)}`}`;
  return (
    <>
      {say}
      <time dateTime={new Date(atMs).toISOString()} title={exact}>
        {formatAgo(atMs, nowMs)}
      </time>
    </>
  );
}

/** A time of the viewer's zone, with UTC in its title. */
export function Moment({ at, say, seconds = false }: TimeProps & { readonly seconds?: boolean }) {
  if (at === null) return null;
  const atMs = toMs(at);
  return (
    <>
      {say}
      <time dateTime={new Date(atMs).toISOString()} title={formatUtc(atMs)}>
        {formatMoment(atMs, { seconds })}
      </time>
    </>
  );
}

function toMs(at: string | number): number {
  return typeof at === "number" ? at : Date.parse(at);
}

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

/** The action of an event: the colour of what became of its request, the same everywhere, and the word. */
export function ActionWord({ action }: { readonly action: string }) {
  const { actions } = useSession();
  const { classify } = useMemo(() => createActionStates(actions), [actions]);
  const name = classifyAction(action);
  return (
    <span style={{ whiteSpace: "nowrap" }}>
      <Swatch colour={ACTION_COLOURS[classify(action)]} /> {name === "other" ? action || "(none)" : name}
    </span>
  );
}

export function Swatch({ colour }: { readonly colour: string }) {
  return (
    <span
      aria-hidden="true"
      style={{ display: "inline-block", width: 9, height: 9, borderRadius: 2, background: colour }}
    />
  );
}

/** A value as JSON, line by line: what is hidden in its texts is spelled out, its own line breaks are not. */
export function Json({ of, label }: { readonly of: unknown; readonly label: string }) {
  return (
    <pre className="lw-code" tabIndex={0} aria-label={label}>
      {JSON.stringify(of, null, 2)
        .split("\n")
        .map((line, index) => (
          <div key={`${index}`}>
            <Payload text={line} none="" />
          </div>
        ))}
    </pre>
  );
}

/** A text of the platform's AI as plain text, without the marks of Markdown. */
export function AdviceText({ text }: { readonly text: string }) {
  return (
    <Box maw="90ch">
      {stripMarkdown(text)
        .split("\n")
        .map((line, index) => (
          <Box key={`${index}`} mih={10}>
            {line === "" ? null : <Payload prose text={line} />}
          </Box>
        ))}
    </Box>
  );
}
