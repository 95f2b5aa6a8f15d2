import { ADDRESSES } from "virtual:operations";
import {
  keepPreviousData,
  type QueryClient,
  type UseQueryOptions,
  type UseQueryResult,
  useInfiniteQuery,
  useMutation,
  useQuery,
  useQueryClient,
} from "@tanstack/react-query";
import type { z } from "zod";
import { pause } from "#lib/waiting.ts";
import { fillAddress } from "#model/operation-address.ts";
import type { OPERATIONS } from "#operations/index.ts";
import { ApiProblem, type ApiRequest, call } from "./client.ts";

type Known = (typeof OPERATIONS)[number];
export type OperationName = Known["name"];
type Named<Name extends OperationName> = Extract<Known, { readonly name: Name }>;

/** The service reads the members of a query as texts, so numbers and lists of words may be sent for them. */
type Loose<Value> = Value extends string ? Value | number | boolean | readonly Value[] : Value;
type LooseMembers<Input> = { readonly [Member in keyof Input]: Loose<Input[Member]> | null };

export type Input<Name extends OperationName> = LooseMembers<z.input<Named<Name>["input"]>>;
export type Output<Name extends OperationName> = z.output<Named<Name>["output"]>;
/** An item of a list. */
export type Item<Name extends OperationName> =
  Output<Name> extends { readonly items: readonly (infer One)[] } ? One : never;

interface Sending {
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Runs an operation. @throws {ApiProblem} for every refusal and failure. */
export function ask<Name extends OperationName>(
  name: Name,
  input: Input<Name>,
  sending: Sending = {},
): Promise<Output<Name>> {
  const address = ADDRESSES[name];
  if (address === undefined) throw new Error(`the console was built without the operation ${name}`);
  const { path, query, body } = fillAddress(address, input);
  const sent = {
    method: address.method,
    query: query as NonNullable<ApiRequest["query"]>,
    ...(body === null ? {} : { body }),
  };
  return askPatiently(() => call<Output<Name>>(path, { ...sent, ...sending }), sending.signal);
}

/** For how long a request is sent again that the service's limits refuse, and a question that it cannot answer yet. */
const REFUSED_MS = 120_000;
const BUSY_MS = 20_000;

/**
 * Asks again when the service says so with `Retry-After`. A 429 had no effect. A change that meets a 503 may have had one, so
 * only questions, which have a signal, are asked again.
 */
async function askPatiently<Answer>(
  send: () => Promise<Answer>,
  signal: AbortSignal | undefined,
): Promise<Answer> {
  const startedAt = Date.now();
  for (let tries = 0; ; tries += 1) {
    try {
      return await send();
    } catch (thrown) {
      if (!(thrown instanceof ApiProblem) || thrown.retryAfterMs === null) throw thrown;
      const { status, retryAfterMs } = thrown;
      const patienceMs = status === 429 ? REFUSED_MS : status === 503 && signal !== undefined ? BUSY_MS : 0;
      const waitMs = Math.max(retryAfterMs, 500 * 2 ** tries);
      if (Date.now() + waitMs > startedAt + patienceMs) throw thrown;
      // Several searches and tabs get the same time. They must not all ask at once again.
      await pause(waitMs * (1 + Math.random() / 4), signal);
    }
  }
}

/** The answer of an operation, asked again as the options say. While the input changes, the former answer stays. */
export function useOperation<Name extends OperationName, Shown = Output<Name>>(
  name: Name,
  input: Input<Name>,
  options: Partial<UseQueryOptions<Output<Name>, Error, Shown>> = {},
) {
  return useQuery({
    queryKey: [name, input],
    queryFn: ({ signal }) => ask(name, input, { signal }),
    placeholderData: keepPreviousData,
    ...(options as object),
  }) as UseQueryResult<Shown>;
}

/** The pages of a list, one after another. */
export function useOperationPages<Name extends OperationName>(
  name: Name,
  input: Input<Name>,
  options: { readonly refetchInterval?: number } = {},
) {
  return useInfiniteQuery({
    queryKey: [name, "pages", input],
    queryFn: ({ pageParam, signal }) => {
      const page = { ...input, after: pageParam ?? undefined } as unknown as Input<Name>;
      return ask(name, page, { signal }) as Promise<{ items: Item<Name>[]; next: string | null }>;
    },
    initialPageParam: null as string | null,
    getNextPageParam: ({ next }) => next,
    placeholderData: keepPreviousData,
    ...options,
  });
}

/** Subjects whose answers show each other: a change of one makes the answers about all of them old. */
const TOGETHER = [
  ["alerts", "overview", "silences", "status"],
  ["channels", "deliveries"],
  ["keys", "sessions"],
];

/** Asks again for the answers about a subject that are shown, and about those that show it. */
export async function refreshSubject(client: QueryClient, subject: string): Promise<void> {
  const concerned = TOGETHER.find((names) => names.includes(subject)) ?? [subject];
  await client.invalidateQueries({
    predicate: ({ queryKey: [name] }) => concerned.includes(subjectOf(String(name))),
  });
}

function subjectOf(name: string): string {
  return name.replace(/\..*/, "");
}

/**
 * Runs a change. Afterwards the answers about its subject are asked for again. `place` takes the input and what is sent
 * beside it out of what is wanted.
 */
export function useChange<Name extends OperationName, Wanted = Input<Name>>(
  name: Name,
  place = (wanted: Wanted): readonly [Input<Name>, Sending?] => [wanted as Input<Name>],
) {
  const client = useQueryClient();
  return useMutation({
    mutationFn: (wanted: Wanted) => ask(name, ...place(wanted)),
    onSettled: () => refreshSubject(client, subjectOf(name)),
  });
}
