import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { ExplainedRouting } from "#operations/routing/explained-routing.ts";
import { ask, type Input, type Item, useChange, useOperation, useOperationPages } from "./ask.ts";
import { call } from "./client.ts";

export type Channel = Item<"channels.list">;
export type Delivery = Item<"deliveries.list">;
export type Job = Item<"jobs.list">;
export type Key = Item<"keys.list">;
export type AuditEntry = Item<"audit.list">;
export type { ExplainedRouting };

export const useChannels = () => useOperation("channels.list", {}, { refetchInterval: 15_000 });

/** The newest notifications that were given up. */
export const useDeadLetters = () =>
  useOperation("deliveries.list", { state: "dead", limit: 100 }, { refetchInterval: 30_000 });

/** Sends one test message. The answer says whether the channel took it. */
export const useTestChannel = () => useChange("channels.test");

/** Sends dead letters again: all of a channel, or one. */
export function useReplay() {
  const client = useQueryClient();
  return useMutation<{ replayed: number }, Error, Input<"channels.replay"> | Input<"deliveries.replay">>({
    mutationFn: (which) => ("id" in which ? ask("deliveries.replay", which) : ask("channels.replay", which)),
    onSettled: () =>
      Promise.all(
        ["channels.list", "deliveries.list"].map((name) => client.invalidateQueries({ queryKey: [name] })),
      ),
  });
}

export interface RoutingQuestion {
  readonly zone: number;
  readonly rule: string;
  readonly severity: string;
  readonly kind: string;
}

/** Returns the channels that Longwatch would notify of such an alert now. */
export function useRoutingTest(question: RoutingQuestion | null) {
  return useQuery({
    queryKey: ["routing-test", question],
    queryFn: ({ signal }) =>
      call<ExplainedRouting>("/api/v1/routing/test", { query: { ...question }, signal }),
    enabled: question !== null,
    placeholderData: keepPreviousData,
  });
}

export const useJobs = () => useOperation("jobs.list", {}, { refetchInterval: 15_000 });

export const useKeys = (all: boolean) => useOperationPages("keys.list", { all, limit: 200 });

interface WantedKey {
  readonly body: Input<"keys.create">;
  /** The admin's key, entered again: a session alone creates no key. */
  readonly ownKey: string;
}

/** Creates a key. Only the answer holds it. */
export function useCreateKey() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ body, ownKey }: WantedKey) => ask("keys.create", body, { headers: { accesskey: ownKey } }),
    onSuccess: () => client.invalidateQueries({ queryKey: ["keys.list"] }),
  });
}

export function useRevokeKey() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (key: string) => ask("keys.revoke", { key }),
    onSuccess: () =>
      Promise.all(
        ["keys.list", "sessions.list"].map((name) => client.invalidateQueries({ queryKey: [name] })),
      ),
  });
}

export const useSessions = () => useOperation("sessions.list", {});

export const useEndSession = () => useChange("sessions.end", ["sessions.list"]);

export type AuditQuery = Pick<Input<"audit.list">, "action" | "since" | "until">;

export const useAudit = (query: AuditQuery) => useOperationPages("audit.list", { ...query, limit: 100 });

export const usePrivacy = () => useOperation("privacy.show", {});

export const useSettings = () => useOperation("settings.show", {});
