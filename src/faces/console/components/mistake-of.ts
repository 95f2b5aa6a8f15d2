import { ApiProblem } from "../api/problem.ts";

/** The rule that the service says a field breaks; null if the failure is about something else. */
export function mistakeOf(thrown: unknown, field: string): string | null {
  if (!(thrown instanceof ApiProblem)) return null;
  return thrown.mistakes.find((one) => one.field.split(".").at(-1) === field)?.rule ?? null;
}
