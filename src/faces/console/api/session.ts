import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import type { z } from "zod";
import type { SessionInfo } from "#faces/http/routes/session.ts";
import type { Scope } from "#model/kinds.ts";
import { ROLE_SCOPES } from "#model/roles.ts";
import { ApiProblem, call, pageToken } from "./client.ts";

/** The reader. */
export type Session = z.infer<typeof SessionInfo>;

const KEY = ["session"];

/** The server decides; this only hides what it would refuse. */
export function hasScope({ roles }: Pick<Session, "roles">, scope: Scope): boolean {
  return roles.some((role) => ROLE_SCOPES[role].includes(scope));
}

/** The session; null if nobody is signed in. */
export function useSessionQuery() {
  return useQuery({
    queryKey: KEY,
    queryFn: async ({ signal }) => {
      try {
        return await call<Session>("/session", { signal });
      } catch (thrown) {
        if (thrown instanceof ApiProblem && thrown.status === 401) return null;
        throw thrown;
      }
    },
    staleTime: 60_000,
    refetchInterval: ({ state }) => (state.status === "error" ? 5_000 : 300_000),
  });
}

/** The session of a page that only a signed-in reader sees. */
export function useSession(): Session {
  const { data } = useSessionQuery();
  if (!data) throw new Error("a page was shown without a session");
  return data;
}

/** Returns whether the reader has a right. A control without its right is not shown. */
export function useMay(scope: Scope): boolean {
  return hasScope(useSession(), scope);
}

export function useSignIn() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (secret: { key: string } | { token: string } | { answer: string }) =>
      call<{ readonly pageToken: string }>("/session", { method: "POST", body: secret }),
    onSuccess: (answer) => {
      pageToken.store(answer.pageToken);
      return client.resetQueries();
    },
  });
}

/** The issuer's name on the button; null if people sign in with keys only. */
export function useIssuer(): string | null {
  const { data } = useQuery({
    queryKey: ["session", "issuer"],
    queryFn: ({ signal }) => call<{ readonly label: string | null }>("/session/issuer", { signal }),
    staleTime: 60_000,
  });
  return data?.label ?? null;
}

const LEFT_PAGE = "longwatch-left-page";

/** The page from which this tab left for the issuer. Two slashes would begin the name of another host. */
export function takeLeftPage(): string {
  const left = sessionStorage.getItem(LEFT_PAGE) ?? "/";
  sessionStorage.removeItem(LEFT_PAGE);
  return /^\/(?!sign-in|[/\\])/.test(left) ? left : "/";
}

/** Leaves for the issuer, which sends the browser back to the page of the sign-in. */
export function useStartAtIssuer() {
  return useMutation({
    mutationFn: () => call<{ readonly url: string }>("/session/issuer", { method: "POST" }),
    onSuccess: ({ url }) => {
      sessionStorage.setItem(LEFT_PAGE, location.pathname + location.search);
      globalThis.location.assign(url);
    },
  });
}

export function useSignOut() {
  const client = useQueryClient();
  return useMutation({
    mutationFn: ({ everywhere }: { everywhere: boolean }) =>
      call<{ readonly signOutUrl: string } | undefined>("/session", {
        method: "DELETE",
        query: { everywhere },
      }),
    onSettled: (answer) => {
      pageToken.forget();
      if (answer !== undefined) globalThis.location.assign(answer.signOutUrl);
      client.removeQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
      client.setQueryData(KEY, null);
    },
  });
}
