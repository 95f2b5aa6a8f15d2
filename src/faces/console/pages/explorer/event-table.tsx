import { Button, useMatches } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { memo, useCallback, useEffect, useMemo, useRef } from "react";
import { many } from "#lib/format.ts";
import { DAY_MS } from "#lib/units.ts";
import { type EventRow, type EventScope, useEventCount, useEventRows } from "../../api/search.ts";
import { ActionWord } from "../../components/facts.tsx";
import { Panel } from "../../components/panel.tsx";
import { FilterValue, Payload } from "../../components/payload.tsx";
import { FailedZones, ProblemBox, QueryView } from "../../components/states.tsx";
import { useRowKeys } from "../../state/keys.ts";
import { formatClock, formatCount, formatMoment, formatUtc } from "../../style/words.ts";
import classes from "./explorer.module.css";

const AT_TOP_PX = 8;
/** Rows that are left below the screen when the next page is asked for. */
const READ_AHEAD = 100;

interface Props {
  readonly scope: EventScope;
  readonly newer: EventScope | null;
  readonly onNewer: () => void;
  readonly opened: EventRow | null;
  readonly onOpen: (row: EventRow) => void;
}

/** The events, newest first. Only the visible rows are in the page, however many were read. */
export function EventTable(props: Props) {
  const { scope } = props;
  const query = useEventRows(scope);
  const { data } = query;
  const rows = useMemo(() => data?.pages.flatMap((page) => page.rows) ?? [], [data]);
  const failed = data?.pages.flatMap((page) => page.failed) ?? [];
  return (
    <Panel
      title="Events"
      about={
        data === undefined
          ? "newest first"
          : `newest first · ${formatCount(rows.length)} read${isAll(query) ? ", all" : ", scroll for older ones"}`
      }
      flush
    >
      <FailedZones of={failed} say="Events are missing." />
      <QueryView query={query} rows={12} asking="the newest events">
        {() => <EventList {...props} rows={rows} query={query} />}
      </QueryView>
    </Panel>
  );
}

/** Whether the last page is shown. While another query is read, the rows are those of the previous one. */
function isAll({ hasNextPage, isPlaceholderData }: ReturnType<typeof useEventRows>): boolean {
  return !hasNextPage && !isPlaceholderData;
}

interface ListProps extends Props {
  readonly rows: readonly EventRow[];
  readonly query: ReturnType<typeof useEventRows>;
}

/** The part of the table that is rendered again with every frame of a scroll. Rows and notes that stay are not. */
function EventList({ scope, newer, onNewer, opened, onOpen, rows, query }: ListProps) {
  const { hasNextPage, fetchNextPage, isFetchingNextPage, isFetchNextPageError, error } = query;
  const list = useRef<HTMLDivElement>(null);
  const height = useMatches({ base: 76, sm: 46 });
  const virtual = useVirtualizer({
    count: rows.length,
    getScrollElement: () => list.current,
    estimateSize: () => height,
    overscan: 12,
  });
  useEffect(() => virtual.measure(), [height, virtual]);
  const items = virtual.getVirtualItems();
  const lastShown = items.at(-1)?.index ?? 0;
  useEffect(() => {
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError && lastShown >= rows.length - READ_AHEAD)
      void fetchNextPage();
  }, [lastShown, rows.length, hasNextPage, isFetchingNextPage, isFetchNextPageError, fetchNextPage]);
  const [chosen, choose] = useRowKeys({
    count: rows.length,
    onOpen: (index) => {
      const row = rows[index];
      if (row !== undefined) onOpen(row);
    },
    onMove: (index) => virtual.scrollToIndex(index),
    isPaused: opened !== null,
  });
  const open = useCallback(
    (index: number, row: EventRow) => {
      choose(index);
      onOpen(row);
    },
    [choose, onOpen],
  );
  const toTop = useCallback(() => list.current?.scrollTo({ top: 0 }), []);
  const isAtTop = (list.current?.scrollTop ?? 0) <= AT_TOP_PX && opened === null;
  const isOverDay = scope.toMs - scope.fromMs > DAY_MS;
  return (
    <div ref={list} className={classes["list"]} tabIndex={0} role="region" aria-label="Events">
      <NewEvents newer={newer} isAtTop={isAtTop} onTop={toTop} onShow={onNewer} />
      <div className={classes["canvas"]} style={{ height: virtual.getTotalSize() }} role="list">
        {items.map(({ index, start, key }) => {
          const row = rows[index];
          if (row === undefined) return null;
          return (
            <Row
              key={key}
              row={row}
              index={index}
              top={start}
              height={height}
              mark={scope.query}
              hasDay={isOverDay}
              isChosen={
                index === chosen || (opened?.logId === row.logId && opened.timestamp === row.timestamp)
              }
              onOpen={open}
            />
          );
        })}
      </div>
      {isFetchingNextPage ? <div className="lw-hint">Reading older events ...</div> : null}
      <ProblemBox thrown={isFetchNextPageError ? error : null} onRetry={() => void fetchNextPage()} />
      {isAll(query) && rows.length > 0 ? (
        <div className="lw-hint">These are all events of the span.</div>
      ) : null}
    </div>
  );
}

interface NewProps {
  readonly newer: EventScope | null;
  readonly isAtTop: boolean;
  readonly onTop: () => void;
  readonly onShow: () => void;
}

const NOTHING: EventScope = { zones: [], fromMs: 0, toMs: 1, query: "", filters: [] };

/** New events come by themselves while the reader is at the top, and wait behind a button while not. */
const NewEvents = memo(({ newer, isAtTop, onTop, onShow }: NewProps) => {
  const { data: count = 0 } = useEventCount(newer ?? NOTHING, newer !== null);
  useEffect(() => {
    if (newer !== null && isAtTop) onShow();
  });
  if (newer === null || count === 0 || isAtTop) return null;
  return (
    <div className={classes["newer"]}>
      <Button
        variant="filled"
        onClick={() => {
          onTop();
          onShow();
        }}
      >
        {many(count, "new event")}
      </Button>
    </div>
  );
});

interface RowProps {
  readonly row: EventRow;
  readonly index: number;
  readonly top: number;
  readonly height: number;
  readonly mark: string;
  readonly hasDay: boolean;
  readonly isChosen: boolean;
  readonly onOpen: (index: number, row: EventRow) => void;
}

/** A row is made of few elements and is laid out by itself, because nine of them come into view with a frame. */
const Row = memo(({ row, index, top, height, mark, hasDay, isChosen, onOpen }: RowProps) => {
  const { timestamp, fields } = row;
  const message = typeof row.log?.["Message"] === "string" ? row.log["Message"] : "";
  const time = formatClock(timestamp, { millis: true });
  return (
    <div
      className={`lw-row ${classes["row"]}`}
      style={{ height, top }}
      role="listitem"
      data-chosen={isChosen || undefined}
      onClick={() => onOpen(index, row)}
    >
      <button
        type="button"
        className={`lw-plain ${classes["time"]}`}
        title={formatUtc(timestamp)}
        aria-label={`Open the event of ${time}`}
      >
        {time}
      </button>
      <FilterValue dense field="action" value={fields.action}>
        <ActionWord action={fields.action} />
      </FilterValue>
      <FilterValue dense field="rule" value={fields.rule} />
      <FilterValue dense field="address" value={fields.address} className={classes["from"]}>
        <Payload text={fields.address} mark={mark} />
      </FilterValue>
      <FilterValue dense field="country" value={fields.country} className={classes["country"]} />
      <span className={`${classes["country"]} lw-dim`} title={message}>
        {message}
      </span>
      <span className={`${classes["country"]} ${classes["time"]}`}>
        {hasDay ? formatMoment(timestamp).slice(0, 10) : null}
      </span>
      <span className={classes["url"]}>
        <Payload text={fields.url} mark={mark} />
      </span>
    </div>
  );
});
