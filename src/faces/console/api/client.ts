import { sessionHeaders } from "./page-token.ts";
import { ApiProblem, readProblem, toProblem } from "./problem.ts";

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
