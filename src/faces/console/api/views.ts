import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { z } from "zod";
import type { SavedViewBody, SavedView as SavedViewSchema } from "#faces/http/routes/v1/saved-views.ts";
import { call } from "./client.ts";
import type { Page } from "./page.ts";

export type SavedView = z.infer<typeof SavedViewSchema>;

/** The saved views of one page: those of the reader's key, and those that are shared. */
export function useViews(page: string) {
  return useQuery({
    queryKey: ["views"],
    queryFn: ({ signal }) => call<Page<SavedView>>("/api/v1/views", { query: { limit: 500 }, signal }),
    select: ({ items }) => items.filter((view) => view.page === page),
    staleTime: 60_000,
  });
}

export function useSaveView() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: z.input<typeof SavedViewBody>) =>
      call<SavedView>("/api/v1/views", { method: "POST", body }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["views"] }),
  });
}

export function useDeleteView() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: number) => call<void>(`/api/v1/views/${id}`, { method: "DELETE" }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["views"] }),
  });
}
