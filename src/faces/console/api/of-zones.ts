import { keepPreviousData, type UseQueryResult, useQuery } from "@tanstack/react-query";
import { ask, type Input, type OperationName, type Output } from "./ask.ts";
import { type ApiProblem, toProblem } from "./problem.ts";
import type { Zone } from "./status.ts";

/** The answers of several zones, and the zones that did not answer. */
export interface OfZones<Answer> {
  readonly answers: readonly { readonly zone: Zone; readonly answer: Answer }[];
  readonly failed: readonly { readonly zone: Zone; readonly problem: ApiProblem }[];
}

/** The answers of an operation about each of these zones, asked again every minute. */
export function useOfZones<Name extends OperationName, Shown = OfZones<Output<Name>>>(
  name: Name,
  zones: readonly Zone[],
  input: Omit<Input<Name>, "zone">,
  select?: (found: OfZones<Output<Name>>) => Shown,
) {
  return useQuery({
    queryKey: [name, zones.map(({ id }) => id), input],
    queryFn: ({ signal }) =>
      askZones(zones, ({ id }) => ask(name, { ...input, zone: id } as Input<Name>, { signal }), signal),
    enabled: zones.length > 0,
    placeholderData: keepPreviousData,
    refetchInterval: 60_000,
    ...({ select } as object),
  }) as UseQueryResult<Shown>;
}

/**
 * Asks for each zone. Zones that fail do not hide the others.
 * @throws {ApiProblem} if every zone failed.
 */
export async function askZones<Answer>(
  zones: readonly Zone[],
  ask: (zone: Zone) => Promise<Answer>,
  signal: AbortSignal,
): Promise<OfZones<Answer>> {
  const settled = await Promise.allSettled(zones.map(ask));
  signal.throwIfAborted();
  const answers: { zone: Zone; answer: Answer }[] = [];
  const failed: { zone: Zone; problem: ApiProblem }[] = [];
  for (const [index, zone] of zones.entries()) {
    const one = settled[index];
    if (one?.status === "fulfilled") answers.push({ zone, answer: one.value });
    else failed.push({ zone, problem: toProblem(one?.reason) });
  }
  const [first] = failed;
  if (answers.length === 0 && first !== undefined) throw first.problem;
  return { answers, failed };
}
