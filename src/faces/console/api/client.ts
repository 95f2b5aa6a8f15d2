/** Sends requests to the service, and reads its answers and problems. */

import { MutationCache, QueryCache, QueryClient } from "@tanstack/react-query";
import type { z } from "zod";
import type { Problem } from "#faces/http/errors/problem.ts";

type QueryValue = string | number | boolean | readonly string[] | null | undefined;

export interface ApiRequest {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  readonly query?: Readonly<Record<string, QueryValue>>;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

function toPath(path: string, query: ApiRequest["query"] = {}): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    // An empty list asks for nothing in particular, as null does.
    if (value == null || (Array.isArray(value) && value.length === 0)) continue;
    params.set(name, String(value));
  }
  return params.size === 0 ? path : `${path}?${params.toString()}`;
}

/** Sends a request with both secrets of the session. @throws {ApiProblem} for every refusal and failure. */
export async function send(
  path: string,
  { method = "GET", query, body, headers, signal }: ApiRequest = {},
): Promise<Response> {
  const hasBody = body !== undefined;
  try {
    const response = await fetch(toPath(path, query), {
      method,
      credentials: "same-origin",
      cache: "no-store",
      headers: {
        ...sessionHeaders(),
        ...(hasBody ? { "content-type": "application/json" } : {}),
        ...headers,
      },
      ...(hasBody ? { body: JSON.stringify(body) } : {}),
      signal: signal ?? null,
    });
    if (!response.ok) throw await readProblem(response);
    return response;
  } catch (thrown) {
    if (thrown instanceof DOMException && thrown.name === "AbortError") throw thrown;
    throw toProblem(thrown);
  }
}

/** Sends a request and returns the JSON of its answer; `undefined` for an empty answer. */
export async function call<Answer>(path: string, request: ApiRequest = {}): Promise<Answer> {
  const response = await send(path, request);
  if (response.status === 204) return undefined as Answer;
  const answer = (await response.json()) as Answer;
  // The platform's routes answer 202 for a zone that is not served.
  const refused = (answer as { errorResponse?: { message?: string } | null }).errorResponse;
  if (response.status === 202 && refused)
    throw new ApiProblem(404, {
      title: "Unknown zone",
      detail: refused.message ?? "Longwatch does not keep this zone.",
    });
  return answer;
}

type Mistake = NonNullable<z.infer<typeof Problem>["mistakes"]>[number];

/** A request that failed, in the API's own words where the API answered. */
export class ApiProblem extends Error {
  override readonly name = "ApiProblem";
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  readonly mistakes: readonly Mistake[];
  readonly requestId: string | null;
  /** How long the server asks the client to wait; null if it does not say. */
  readonly retryAfterMs: number | null;

  constructor(status: number, about: Partial<Omit<ApiProblem, "status">> & { readonly title: string }) {
    super(about.detail ?? about.title);
    this.status = status;
    this.title = about.title;
    this.detail = about.detail ?? "";
    this.mistakes = about.mistakes ?? [];
    this.requestId = about.requestId ?? null;
    this.retryAfterMs = about.retryAfterMs ?? null;
  }

  /** Whether the service, or a proxy in front of it, failed: the same request can succeed later without a change. */
  get isPassing(): boolean {
    return this.status === 0 || this.status >= 500;
  }
}

/** Reads the problem of a refused answer. The platform's routes and our own have slightly different forms. */
async function readProblem(response: Response): Promise<ApiProblem> {
  const retryAfter = Number(response.headers.get("retry-after"));
  const about = {
    title: response.statusText === "" ? `Status ${response.status}` : response.statusText,
    requestId: response.headers.get("x-request-id"),
    retryAfterMs: retryAfter > 0 ? retryAfter * 1_000 : null,
  };
  const body = (await response.json().catch(() => null)) as Record<string, unknown> | null;
  if (body === null || typeof body !== "object") return new ApiProblem(response.status, about);
  const text = (name: string) => {
    const value = body[name];
    return typeof value === "string" ? value : "";
  };
  const mistakes = Array.isArray(body["mistakes"]) ? body["mistakes"] : readErrors(body["errors"]);
  return new ApiProblem(response.status, {
    ...about,
    title: text("title") || about.title,
    detail: text("detail") || mistakes.map(({ rule }) => rule).join(" "),
    mistakes,
  });
}

/** The form of the platform's validation answers: `{ errors: { field: [text] } }`. */
function readErrors(errors: unknown): Mistake[] {
  if (typeof errors !== "object" || errors === null) return [];
  return Object.entries(errors).flatMap(([field, rules]) =>
    [rules].flat().map((rule) => ({ field, rule: String(rule) })),
  );
}

export function toProblem(thrown: unknown): ApiProblem {
  if (thrown instanceof ApiProblem) return thrown;
  if (thrown instanceof TypeError || (thrown instanceof DOMException && thrown.name === "TimeoutError"))
    return new ApiProblem(0, {
      title: "The service does not answer",
      detail: "The connection to Longwatch failed. The page tries again by itself.",
    });
  return new ApiProblem(0, { title: "The page failed", detail: String(thrown) });
}

const STORED = "longwatch-page-token";

/**
 * The session's second secret. The browser sends the cookie to every port of the host, but keeps this for pages of this
 * origin, in every tab.
 */
export const pageToken = {
  read: () => localStorage.getItem(STORED),
  store: (token: string) => localStorage.setItem(STORED, token),
  forget: () => localStorage.removeItem(STORED),
};

/** Requests so long after the last input of a person count as use of the session. Polls of a page left open do not. */
const ACTIVE_MS = 60_000;
let lastInputAt = Date.now();
for (const input of ["pointerdown", "keydown", "wheel", "touchmove"])
  document.addEventListener(input, () => (lastInputAt = Date.now()), { capture: true, passive: true });

/** The headers that go with the session's cookie. */
function sessionHeaders(): Readonly<Record<string, string>> {
  const token = pageToken.read();
  return {
    ...(token === null ? {} : { "x-page-token": token }),
    ...(Date.now() - lastInputAt < ACTIVE_MS ? { "x-user-active": "true" } : {}),
  };
}

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
