/** Panels, pages of a list and tables. */
import { Box, Group } from "@mantine/core";
import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useIsDown } from "../state/zones.ts";
import { SubtleButton } from "./buttons.tsx";
import classes from "./panel.module.css";
import { Empty, Partial, type QueryProps, QueryView } from "./states.tsx";

interface HeadProps {
  readonly title: ReactNode;
  /** The span of the numbers, and whether they are complete. */
  readonly about?: ReactNode;
  readonly actions?: ReactNode;
}

interface Props extends HeadProps {
  /** The body touches the borders: tables and charts. */
  readonly flush?: boolean;
  readonly children: ReactNode;
}

/** The time of numbers that are read again and again: `now`, while the service answers. */
export function Now() {
  return useIsDown() ? "at the last answer" : "now";
}

/** A part of a page with a heading. */
export function Panel({ title, about, actions, flush = false, children }: Props) {
  return (
    <section className="lw-panel">
      <header className={classes["head"]}>
        <h2 className={classes["title"]}>{title}</h2>
        {about === undefined ? null : <div className="lw-note">{about}</div>}
        <Group gap={4} ml="auto">
          {actions}
        </Group>
      </header>
      <Box {...(flush ? { pb: 4 } : { pt: 4, px: 12, pb: 12 })}>{children}</Box>
    </section>
  );
}

type QueryPanelProps<Data> = HeadProps & QueryProps<Data> & { readonly title: string };

/** A part of a page that shows a query. What is asked for is called as the panel is, if it has no other words. */
export function QueryPanel<Data>({ title, about, actions, ...shown }: QueryPanelProps<Data>) {
  return (
    <Panel title={title} about={about} actions={actions} flush>
      <QueryView asking={`the ${title.toLowerCase()}`} {...shown} />
    </Panel>
  );
}

interface PagedPanelProps<One> {
  readonly title: string;
  readonly about: string;
  readonly actions?: ReactNode;
  readonly query: UseInfiniteQueryResult<InfiniteData<{ readonly items: readonly One[] }>>;
  /** Shown above the list, whatever it has. */
  readonly before?: ReactNode;
  /** The plural of the entries, if the title is something else. */
  readonly what?: string;
  readonly isShown?: (one: One) => boolean;
  /** Shown if there is no entry. */
  readonly none: ReactNode;
  readonly noneAction?: ReactNode;
  readonly children: (entries: readonly One[]) => ReactNode;
}

/** A list that is read page by page. At its end is a button for the next page, and why it could not be read. */
export function PagedPanel<One>({ title, about, actions, query, none, ...shown }: PagedPanelProps<One>) {
  const { what = title.toLowerCase(), before, noneAction, isShown = () => true, children } = shown;
  return (
    <Panel title={title} about={about} actions={actions} flush>
      {before}
      <QueryView query={query} rows={6} asking={what}>
        {({ pages }) => {
          const entries = pages.flatMap(({ items }) => items).filter(isShown);
          return entries.length === 0 ? <Empty action={noneAction}>{none}</Empty> : children(entries);
        }}
      </QueryView>
      {query.isFetchNextPageError ? (
        <Partial>
          Older {what} could not be read. {query.error?.message}
        </Partial>
      ) : null}
      {query.hasNextPage ? (
        <div className="lw-hint">
          <SubtleButton
            word={`Show older ${what}`}
            loading={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          />
        </div>
      ) : null}
    </Panel>
  );
}

export interface Column<Row> {
  readonly head: ReactNode;
  readonly cell: (row: Row) => ReactNode;
  /** `lw-number` and `lw-wide`. */
  readonly className?: string;
  /** How the rows are sorted by this column. */
  readonly sort?: "ascending" | "descending" | undefined;
}

interface DataTableProps<Row> {
  readonly rows: readonly Row[];
  readonly idOf: (row: Row) => string | number;
  readonly columns: readonly Column<Row>[];
  readonly className?: string | undefined;
  /** The number of the row that the keys have chosen. */
  readonly chosen?: number;
}

/** A table with a row for each item. */
export function DataTable<Row>({ rows, idOf, columns, className = "", chosen }: DataTableProps<Row>) {
  return (
    <table className={`lw-table ${className}`}>
      <thead>
        <tr>
          {columns.map(({ head, className: name, sort }, index) => (
            <th key={`${index}`} className={name} aria-sort={sort}>
              {head}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row, at) => (
          <tr key={idOf(row)} data-row={at} data-chosen={at === chosen || undefined}>
            {columns.map(({ cell, className: name }, index) => (
              <td key={`${index}`} className={name}>
                {cell(row)}
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
