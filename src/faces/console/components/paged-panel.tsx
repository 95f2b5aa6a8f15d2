import type { InfiniteData, UseInfiniteQueryResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Panel } from "./panel.tsx";
import { QuietButton } from "./quiet-button.tsx";
import { Empty, Partial, QueryView } from "./states.tsx";

interface Props<One> {
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
export function PagedPanel<One>({ title, about, actions, query, none, ...shown }: Props<One>) {
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
          <QuietButton
            word={`Show older ${what}`}
            loading={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          />
        </div>
      ) : null}
    </Panel>
  );
}
