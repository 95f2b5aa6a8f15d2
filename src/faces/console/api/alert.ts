import { useMutation, useQueryClient } from "@tanstack/react-query";
import {
  ask,
  type Input,
  type Item,
  type Output,
  refreshSubject,
  useChange,
  useOperation,
  useOperationPages,
} from "./ask.ts";

export type Alert = Item<"alerts.list">;
export type AlertDetail = Output<"alerts.show">;
export type AlertContext = Output<"alerts.context">;
export type Silence = Item<"silences.list">;
type Matchers = NonNullable<Input<"silences.preview">["matchers"]>;
export type NewSilence = Input<"silences.add"> & { readonly matchers: Matchers };

/** Another alert is another story: the page never shows it below the address of the next. */
const NO_FORMER = { placeholderData: () => undefined };

export const useAlert = (id: string) =>
  useOperation("alerts.show", { id }, { refetchInterval: 30_000, ...NO_FORMER });

export const useAlertContext = (id: string) =>
  useOperation("alerts.context", { id }, { staleTime: 30_000, ...NO_FORMER });

/** The newest alerts of one page. The stream makes them be read again. */
export const useAlerts = (query: Input<"alerts.list">) =>
  useOperation("alerts.list", query, { refetchInterval: 60_000 });

/** Silences page after page, newest first. */
export const useSilences = (state: readonly Silence["state"][]) =>
  useOperationPages("silences.list", { state, limit: 50 }, { refetchInterval: 60_000 });

export const useSilencePreview = (matchers: NewSilence["matchers"]) =>
  useOperation("silences.preview", { matchers }, { enabled: Object.keys(matchers).length > 0 });

export const useAddSilence = () => useChange("silences.add");

/** Acknowledges, resolves or marks an alert, or resolves one attacker of an incident. */
export function useAlertAct(id: number) {
  const client = useQueryClient();
  return useMutation({
    // A note may stay empty.
    mutationFn: async ({ note = "", ...act }: Omit<Input<"alerts.act">, "ids"> & { note?: string }) => {
      const { items } = await ask("alerts.act", { ...act, ids: [id], ...(note === "" ? {} : { note }) });
      const refused = items.find(({ result }) => result === "refused");
      if (refused !== undefined) throw new Error(refused.detail ?? "refused");
    },
    onSuccess: () => refreshSubject(client, "alerts"),
  });
}
