import type { LiarRequest } from "./asked.ts";
import type { ActiveLie } from "./lie.ts";

interface ForeignAnswer {
  readonly rows?: readonly { readonly logId: string }[] | null;
  readonly logs?: readonly { readonly logId: string }[] | null;
}

/** Answers what the emulator answers for the other zone. An export is passed on as `Unbendable`. */
export async function answerForeign(asked: LiarRequest, lie: ActiveLie): Promise<unknown> {
  const path = asked.path.replace(/\/(event-logs|shield-zone)\/\d+/, `/$1/${lie.otherZone}`);
  const answer = (await asked.truth.ask(path, asked.body)) as ForeignAnswer;
  const entries = [...(answer.rows ?? []), ...(answer.logs ?? [])];
  for (const { logId } of entries) asked.witness.confuse(logId);
  asked.note(lie, entries.length);
  return answer;
}
