import {
  keepPreviousData,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import type { z } from "zod";
import type { KeyItem } from "#faces/http/keys/key-item.ts";
import type { JobItem } from "#faces/http/routes/v1/jobs.ts";
import type { CreateBody } from "#faces/http/routes/v1/keys.ts";
import type { ExplainedRouting as ExplainedRoutingSchema } from "#faces/http/routes/v1/routing-test.ts";
import type { SessionItem } from "#faces/http/routes/v1/sessions.ts";
import type { PrivacyAnswer, SettingsAnswer } from "#faces/http/routes/v1/settings.ts";
import type { AuditItem } from "#operations/audit/audit-trail.ts";
import type { ChannelItem } from "#operations/deliveries/channels.ts";
import type { DeliveryItem } from "#operations/deliveries/deliveries.ts";
import { call } from "./client.ts";
import type { Page } from "./page.ts";

export type Channel = z.infer<typeof ChannelItem>;
export type Delivery = z.infer<typeof DeliveryItem>;
export type Job = z.infer<typeof JobItem>;
export type Key = z.infer<typeof KeyItem>;
export type OwnSession = z.infer<typeof SessionItem>;
export type AuditEntry = z.infer<typeof AuditItem>;
export type ExplainedRouting = z.infer<typeof ExplainedRoutingSchema>;

interface List<Item> {
  readonly items: readonly Item[];
}

const KEYS = {
  channels: ["channels"],
  dead: ["deliveries", "dead"],
  keys: ["keys"],
  sessions: ["sessions"],
};

export function useChannels() {
  return useQuery({
    queryKey: KEYS.channels,
    queryFn: ({ signal }) => call<List<Channel>>("/api/v1/channels", { signal }),
    refetchInterval: 15_000,
  });
}

/** The newest notifications that were given up. */
export function useDeadLetters() {
  return useQuery({
    queryKey: KEYS.dead,
    queryFn: ({ signal }) =>
      call<Page<Delivery>>("/api/v1/deliveries", { query: { state: "dead", limit: 100 }, signal }),
    refetchInterval: 30_000,
  });
}

/** Sends one test message. The answer says whether the channel took it. */
export function useTestChannel() {
  return useMutation({
    mutationFn: (name: string) =>
      call<{ readonly isDelivered: boolean; readonly text: string }>(
        `/api/v1/channels/${encodeURIComponent(name)}/test`,
        { method: "POST" },
      ),
  });
}

/** Sends dead letters again: all of a channel, or one. */
export function useReplay() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (which: { readonly channel: string } | { readonly id: number }) =>
      call<{ readonly replayed: number }>(
        "id" in which
          ? `/api/v1/deliveries/${which.id}/replay`
          : `/api/v1/channels/${encodeURIComponent(which.channel)}/replay`,
        { method: "POST" },
      ),
    onSettled: () =>
      Promise.all([KEYS.channels, KEYS.dead].map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
}

export interface RoutingQuestion {
  readonly zone: number;
  readonly rule: string;
  readonly severity: string;
  readonly kind: string;
}

/** Who would be notified of such an alert now. */
export function useRoutingTest(question: RoutingQuestion | null) {
  return useQuery({
    queryKey: ["routing-test", question],
    queryFn: ({ signal }) =>
      call<ExplainedRouting>("/api/v1/routing/test", { query: { ...question }, signal }),
    enabled: question !== null,
    placeholderData: keepPreviousData,
  });
}

export function useJobs() {
  return useQuery({
    queryKey: ["jobs"],
    queryFn: ({ signal }) => call<List<Job>>("/api/v1/jobs", { signal }),
    refetchInterval: 15_000,
  });
}

export function useKeys(all: boolean) {
  return useInfiniteQuery({
    queryKey: [...KEYS.keys, all],
    queryFn: ({ pageParam, signal }) =>
      call<Page<Key>>("/api/v1/keys", { query: { all, limit: 200, after: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
  });
}

interface WantedKey {
  readonly body: z.input<typeof CreateBody>;
  /** The admin's key, entered again: a session alone creates no key. */
  readonly ownKey: string;
}

/** Creates a key. Only the answer holds it. */
export function useCreateKey() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ body, ownKey }: WantedKey) =>
      call<Key & { readonly key: string }>("/api/v1/keys", {
        method: "POST",
        body,
        headers: { accesskey: ownKey },
      }),
    onSuccess: () => client.invalidateQueries({ queryKey: KEYS.keys }),
  });
}

export function useRevokeKey() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) => call<void>(`/api/v1/keys/${encodeURIComponent(id)}`, { method: "DELETE" }),
    onSuccess: () =>
      Promise.all([KEYS.keys, KEYS.sessions].map((queryKey) => client.invalidateQueries({ queryKey }))),
  });
}

export function useSessions() {
  return useQuery({
    queryKey: KEYS.sessions,
    queryFn: ({ signal }) => call<List<OwnSession>>("/api/v1/sessions", { signal }),
  });
}

export function useEndSession() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (id: string) =>
      call<void>(`/api/v1/sessions/${encodeURIComponent(id)}`, { method: "DELETE" }),
    onSuccess: () => client.invalidateQueries({ queryKey: KEYS.sessions }),
  });
}

export interface AuditQuery {
  readonly action?: string;
  readonly since?: number;
  readonly until?: number;
}

export function useAudit(query: AuditQuery) {
  return useInfiniteQuery({
    queryKey: ["audit", query],
    queryFn: ({ pageParam, signal }) =>
      call<Page<AuditEntry>>("/api/v1/audit", { query: { ...query, limit: 100, after: pageParam }, signal }),
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
  });
}

export function usePrivacy() {
  return useQuery({
    queryKey: ["privacy"],
    queryFn: ({ signal }) => call<z.infer<typeof PrivacyAnswer>>("/api/v1/privacy", { signal }),
  });
}

export function useSettings() {
  return useQuery({
    queryKey: ["settings"],
    queryFn: ({ signal }) => call<z.infer<typeof SettingsAnswer>>("/api/v1/settings", { signal }),
  });
}
