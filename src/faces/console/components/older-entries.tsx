import { Button } from "@mantine/core";
import { Partial } from "./states.tsx";

interface Props {
  readonly query: {
    readonly hasNextPage: boolean;
    readonly isFetchingNextPage: boolean;
    readonly isFetchNextPageError: boolean;
    readonly error: Error | null;
    readonly fetchNextPage: () => Promise<unknown>;
  };
  /** The plural of the entries. */
  readonly what: string;
}

/** The end of a list that is read page by page: a button for the next page, and why it could not be read. */
export function OlderEntries({ query, what }: Props) {
  return (
    <>
      {query.isFetchNextPageError ? (
        <Partial>
          Older {what} could not be read. {query.error?.message}
        </Partial>
      ) : null}
      {query.hasNextPage ? (
        <div className="lw-more">
          <Button
            variant="default"
            loading={query.isFetchingNextPage}
            onClick={() => void query.fetchNextPage()}
          >
            Show older {what}
          </Button>
        </div>
      ) : null}
    </>
  );
}
