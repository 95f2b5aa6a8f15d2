import { Button, useMatches } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { useEffect, useMemo, useRef } from "react";
import { DAY_MS } from "../../../lib/units.ts";
import { type EventRow, type EventScope, useEventCount, useEventRows } from "../../api/search.ts";
import { ActionWord } from "../../components/action-word.tsx";
import { FilterValue } from "../../components/filter-value.tsx";
import { Panel } from "../../components/panel.tsx";
import { Payload } from "../../components/payload.tsx";
import { Partial, ProblemBox, QueryView } from "../../components/states.tsx";
import { formatClock, formatCount, formatMoment, formatUtc } from "../../look/words.ts";
import { useRowKeys } from "../../state/row-keys.ts";
import { zoneTitle } from "../../state/zones.ts";
import classes from "./explorer.module.css";

const AT_TOP_PX = 8;

interface Props {
  readonly scope: EventScope;
  readonly newer: EventScope | null;
  readonly onNewer: () => void;
  readonly opened: EventRow | null;
  readonly onOpen: (row: EventRow) => void;
}

/** The events, newest first. Only the visible rows are in the page, however many were read. */
export function EventTable({ scope, newer, onNewer, opened, onOpen }: Props) {
  const query = useEventRows(scope);
  const { data, hasNextPage, fetchNextPage, isFetchingNextPage, isFetchNextPageError, error } = query;
  const rows = useMemo(() => data?.pages.flatMap((page) => page.rows) ?? [], [data]);
  const failed = data?.pages.flatMap((page) => page.failed) ?? [];
  const list = useRef<HTMLDivElement>(null);
  const height = useMatches({ base: 66, sm: 46 });
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
    if (hasNextPage && !isFetchingNextPage && !isFetchNextPageError && lastShown >= rows.length - 30)
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
  const isOverDay = scope.toMs - scope.fromMs > DAY_MS;
  return (
    <Panel
      title="Events"
      about={
        data === undefined
          ? "newest first"
          : `newest first · ${formatCount(rows.length)} read${hasNextPage ? ", scroll for older ones" : ", all"}`
      }
      flush
    >
      {failed.length > 0 ? (
        <Partial>
          Events are missing.{" "}
          {failed.map(({ zone, problem }) => `${zoneTitle(zone)}: ${problem.message}`).join(" ")}
        </Partial>
      ) : null}
      <QueryView query={query} rows={12} asking="the newest events">
        {() => (
          <div ref={list} className={classes["list"]} tabIndex={0} role="region" aria-label="Events">
            <NewEvents newer={newer} list={list.current} isHeld={opened !== null} onShow={onNewer} />
            <div className={classes["canvas"]} style={{ height: virtual.getTotalSize() }} role="list">
              {items.map(({ index, start, key }) => {
                const row = rows[index];
                if (row === undefined) return null;
                return (
                  <Row
                    key={key}
                    row={row}
                    top={start}
                    height={height}
                    mark={scope.query}
                    hasDay={isOverDay}
                    isChosen={
                      index === chosen || (opened?.logId === row.logId && opened.timestamp === row.timestamp)
                    }
                    onOpen={() => {
                      choose(index);
                      onOpen(row);
                    }}
                  />
                );
              })}
            </div>
            {isFetchingNextPage ? <div className={classes["end"]}>Reading older events ...</div> : null}
            {isFetchNextPageError ? <ProblemBox thrown={error} onRetry={() => void fetchNextPage()} /> : null}
            {!hasNextPage && rows.length > 0 ? (
              <div className={classes["end"]}>These are all events of the span.</div>
            ) : null}
          </div>
        )}
      </QueryView>
    </Panel>
  );
}

interface NewProps {
  readonly newer: EventScope | null;
  readonly list: HTMLDivElement | null;
  readonly isHeld: boolean;
  readonly onShow: () => void;
}

/** New events come by themselves while the reader is at the top, and wait behind a button while not. */
function NewEvents({ newer, list, isHeld, onShow }: NewProps) {
  const { data: count = 0 } = useEventCount(
    newer ?? { zones: [], fromMs: 0, toMs: 1, query: "", filters: [] },
    newer !== null,
  );
  const isAtTop = (list?.scrollTop ?? 0) <= AT_TOP_PX && !isHeld;
  useEffect(() => {
    if (newer !== null && isAtTop) onShow();
  });
  if (newer === null || count === 0 || isAtTop) return null;
  return (
    <div className={classes["newer"]}>
      <Button
        variant="filled"
        onClick={() => {
          list?.scrollTo({ top: 0 });
          onShow();
        }}
      >
        {formatCount(count)} new {count === 1 ? "event" : "events"}
      </Button>
    </div>
  );
}

interface RowProps {
  readonly row: EventRow;
  readonly top: number;
  readonly height: number;
  readonly mark: string;
  readonly hasDay: boolean;
  readonly isChosen: boolean;
  readonly onOpen: () => void;
}

function Row({ row, top, height, mark, hasDay, isChosen, onOpen }: RowProps) {
  const { timestamp, fields } = row;
  const message = typeof row.log?.["Message"] === "string" ? row.log["Message"] : "";
  const time = formatClock(timestamp, { millis: true });
  return (
    <div
      className={classes["row"]}
      style={{ height, transform: `translateY(${top}px)` }}
      role="listitem"
      data-chosen={isChosen || undefined}
      onClick={onOpen}
    >
      <button
        type="button"
        className={classes["time"]}
        title={formatUtc(timestamp)}
        aria-label={`Open the event of ${time}`}
      >
        {time}
      </button>
      <span>
        <FilterValue dense field="action" value={fields.action}>
          <ActionWord action={fields.action} />
        </FilterValue>
      </span>
      <span>
        <FilterValue dense field="ruleId" value={fields.ruleId} />
      </span>
      <span className={classes["from"]}>
        <FilterValue dense field="ip" value={fields.ip}>
          <Payload text={fields.ip} mark={mark} none="(none)" />
        </FilterValue>
      </span>
      <span className={classes["country"]}>
        <FilterValue dense field="country" value={fields.country} />
      </span>
      <span className={`${classes["country"]} lw-dim`} title={message}>
        {message}
      </span>
      {hasDay ? (
        <span className={`${classes["country"]} ${classes["time"]}`}>
          {formatMoment(timestamp).slice(0, 10)}
        </span>
      ) : (
        <span className={classes["country"]} />
      )}
      <span className={classes["url"]}>
        <Payload text={fields.url} mark={mark} />
      </span>
    </div>
  );
}
