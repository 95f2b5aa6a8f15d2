import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import { ApiProblem } from "./problem.ts";

const MAX_TRIES = 2;

/** A refused session is read again, so that the page asks for a key instead of showing an error in every panel. */
function recheckSession(thrown: unknown, client: QueryClient): void {
  if (thrown instanceof ApiProblem && thrown.status === 401)
    void client.invalidateQueries({ queryKey: ["session"] });
}

export function createQueryClient(): QueryClient {
  const client: QueryClient = new QueryClient({
    queryCache: new QueryCache({
      onError: (thrown, query) => {
        if (query.queryKey[0] !== "session") recheckSession(thrown, client);
      },
    }),
    mutationCache: new MutationCache({ onError: (thrown) => recheckSession(thrown, client) }),
    defaultOptions: {
      queries: {
        // A service on this machine answers without a network.
        networkMode: "always",
        staleTime: 10_000,
        gcTime: 120_000,
        refetchOnWindowFocus: true,
        // Of answers that waiting can change. A refusal is shown at once.
        retry: (failures, thrown) => thrown instanceof ApiProblem && thrown.isPassing && failures < MAX_TRIES,
        retryDelay: (failures, thrown) =>
          Math.min((thrown instanceof ApiProblem && thrown.retryAfterMs) || 500 * 2 ** failures, 10_000),
      },
      mutations: { networkMode: "always", retry: false },
    },
  });
  return client;
}
