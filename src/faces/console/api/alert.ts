import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import type { z } from "zod";
import type { actOnAlerts } from "#operations/alerts/act-on-alerts.ts";
import type { AlertContext } from "#operations/alerts/alert-context.ts";
import type { AlertDetail } from "#operations/alerts/alert-detail.ts";
import type { addSilence } from "#operations/silences/add-silence.ts";
import type { previewSilence } from "#operations/silences/preview-silence.ts";
import type { Silence, WantedMatchers } from "#operations/silences/silence.ts";
import { call } from "./client.ts";
import type { Page } from "./page.ts";

export type { AlertContext, AlertDetail };
export type SilencePreview = z.infer<typeof previewSilence.output>;
export type { Silence };
export type ManyActs = z.input<typeof actOnAlerts.input>;
export type ManyActed = z.infer<typeof actOnAlerts.output>;
export type NewSilence = z.input<typeof addSilence.input> & {
  readonly matchers: z.input<typeof WantedMatchers>;
};

export function useAlert(id: string) {
  return useQuery({
    queryKey: ["alert", id],
    queryFn: ({ signal }) => call<AlertDetail>(`/api/v1/alerts/${encodeURIComponent(id)}`, { signal }),
    refetchInterval: 30_000,
  });
}

export function useAlertContext(id: string) {
  return useQuery({
    queryKey: ["alert", id, "context"],
    queryFn: ({ signal }) =>
      call<AlertContext>(`/api/v1/alerts/${encodeURIComponent(id)}/context`, { signal }),
    staleTime: 30_000,
  });
}

/** Acknowledges or resolves an alert. */
export function useAlertAct(id: number) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ act, note }: { readonly act: "ack" | "resolve"; readonly note: string }) =>
      call<{ readonly result: string }>(`/api/v1/alerts/${id}/${act}`, {
        method: "POST",
        body: note === "" ? {} : { note },
      }),
    onSuccess: () => refreshAlerts(client),
  });
}

/** Marks an alert as attack or noise. */
export function useMarkAlert(id: number) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ mark, note }: { readonly mark: "attack" | "noise"; readonly note: string }) =>
      call<unknown>(`/api/v1/alerts/${id}/mark`, {
        method: "POST",
        body: { mark, ...(note === "" ? {} : { note }) },
      }),
    onSuccess: () => refreshAlerts(client),
  });
}

export function useSilencePreview(matchers: NewSilence["matchers"]) {
  return useQuery({
    queryKey: ["silence-preview", matchers],
    queryFn: ({ signal }) =>
      call<SilencePreview>("/api/v1/silences/preview", { method: "POST", body: { matchers }, signal }),
    enabled: Object.keys(matchers).length > 0,
    placeholderData: keepPreviousData,
  });
}

export function useAddSilence() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: NewSilence) =>
      call<z.infer<typeof addSilence.output>>("/api/v1/silences", { method: "POST", body }),
    onSuccess: () => refreshAlerts(client),
  });
}

/** Silences page after page, newest first. */
export function useSilences(state: readonly Silence["state"][]) {
  return useInfiniteQuery({
    queryKey: ["silences", state],
    queryFn: ({ pageParam, signal }) =>
      call<Page<Silence>>("/api/v1/silences", { query: { state, limit: 50, after: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
  });
}

/** Moves the end of a silence to a later time. */
export function useExtendSilence() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ id, expiresAt }: Pick<Silence, "id" | "expiresAt">) =>
      call<Silence>(`/api/v1/silences/${id}`, { method: "PATCH", body: { expiresAt } }),
    onSuccess: () => refreshAlerts(client),
  });
}

/** Acknowledges, resolves or silences many alerts. */
export function useActOnAlerts() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: ManyActs) => call<ManyActed>("/api/v1/alerts/act", { method: "POST", body }),
    onSettled: () => refreshAlerts(client),
  });
}

export function useEndSilence() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: number) => call<unknown>(`/api/v1/silences/${id}`, { method: "DELETE" }),
    onSuccess: () => refreshAlerts(client),
  });
}

async function refreshAlerts(client: ReturnType<typeof useQueryClient>): Promise<void> {
  const names = ["alert", "alerts", "overview", "silences", "status"];
  await Promise.all(names.map((name) => client.invalidateQueries({ queryKey: [name] })));
}
