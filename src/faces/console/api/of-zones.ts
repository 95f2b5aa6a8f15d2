import { type ApiProblem, toProblem } from "./problem.ts";
import type { Zone } from "./status.ts";

/** The answers of several zones, and the zones that did not answer. */
export interface OfZones<Answer> {
  readonly answers: readonly { readonly zone: Zone; readonly answer: Answer }[];
  readonly failed: readonly { readonly zone: Zone; readonly problem: ApiProblem }[];
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
