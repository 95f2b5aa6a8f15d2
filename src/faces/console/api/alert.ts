import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import type { Mark, StateAct } from "#model/kinds.ts";
import { ask, type Input, type Item, type Output } from "./ask.ts";

export type AlertDetail = Output<"alerts.show">;
export type AlertContext = Output<"alerts.context">;
export type Silence = Item<"silences.list">;
export type ManyActs = Input<"alerts.act">;
export type ManyActed = Output<"alerts.act">;
type Matchers = NonNullable<Input<"silences.preview">["matchers"]>;
export type NewSilence = Input<"silences.add"> & { readonly matchers: Matchers };

export function useAlert(id: string) {
  return useQuery({
    queryKey: ["alert", id],
    queryFn: ({ signal }) => ask("alerts.show", { id }, { signal }),
    refetchInterval: 30_000,
  });
}

export function useAlertContext(id: string) {
  return useQuery({
    queryKey: ["alert", id, "context"],
    queryFn: ({ signal }) => ask("alerts.context", { id }, { signal }),
    staleTime: 30_000,
  });
}

/** Acknowledges or resolves an alert, or resolves one attacker of an incident. */
export function useAlertAct(id: number, attacker?: string) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: async ({ act, note }: { readonly act: StateAct; readonly note: string }) => {
      const said = note === "" ? {} : { note };
      if (attacker === undefined) return ask(`alerts.${act}`, { id: String(id), ...said });
      const { items } = await ask("alerts.act", { act, ids: [id], attacker, ...said });
      const refused = items.find(({ result }) => result === "refused");
      if (refused !== undefined) throw new Error(refused.detail ?? "refused");
      return items[0];
    },
    onSuccess: () => refreshAlerts(client),
  });
}

/** Marks an alert as attack or noise. */
export function useMarkAlert(id: number) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ mark, note }: { readonly mark: Mark; readonly note: string }) =>
      ask("alerts.mark", { id: String(id), mark, ...(note === "" ? {} : { note }) }),
    onSuccess: () => refreshAlerts(client),
  });
}

export function useSilencePreview(matchers: NewSilence["matchers"]) {
  return useQuery({
    queryKey: ["silence-preview", matchers],
    queryFn: ({ signal }) => ask("silences.preview", { matchers }, { signal }),
    enabled: Object.keys(matchers).length > 0,
    placeholderData: keepPreviousData,
  });
}

export function useAddSilence() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: NewSilence) => ask("silences.add", body),
    onSuccess: () => refreshAlerts(client),
  });
}

/** Silences page after page, newest first. */
export function useSilences(state: readonly Silence["state"][]) {
  return useInfiniteQuery({
    queryKey: ["silences", state],
    queryFn: ({ pageParam, signal }) =>
      ask("silences.list", { state, limit: 50, after: pageParam }, { signal }),
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
      ask("silences.extend", { id: String(id), expiresAt }),
    onSuccess: () => refreshAlerts(client),
  });
}

/** Acknowledges, resolves or silences many alerts. */
export function useActOnAlerts() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (body: ManyActs) => ask("alerts.act", body),
    onSettled: () => refreshAlerts(client),
  });
}

export function useEndSilence() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: number) => ask("silences.expire", { id: String(id) }),
    onSuccess: () => refreshAlerts(client),
  });
}

async function refreshAlerts(client: ReturnType<typeof useQueryClient>): Promise<void> {
  const names = ["alert", "alerts", "overview", "silences", "status"];
  await Promise.all(names.map((name) => client.invalidateQueries({ queryKey: [name] })));
}
