import type { z } from "zod";
import type { Problem } from "#faces/http/errors/problem.ts";

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
export async function readProblem(response: Response): Promise<ApiProblem> {
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
