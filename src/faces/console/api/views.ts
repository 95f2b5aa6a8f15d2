import { type Item, useChange, useOperation } from "./ask.ts";

export type SavedView = Item<"views.list">;

/** The saved views of one page: those of the reader's key, and those that are shared. */
export function useViews(page: string) {
  const found = useOperation("views.list", { limit: 500 }, { staleTime: 60_000 });
  return { ...found, data: found.data?.items.filter((view) => view.page === page) };
}

export const useSaveView = () => useChange("views.save", ["views.list"]);

export const useDeleteView = () => useChange("views.delete", ["views.list"]);
