import type { SendOptions, SendResult } from "./notifier.ts";

const PROGRESS = /^part (\d{1,3})(?: (.*))?$/s;

/**
 * Sends a message of several parts, in order, going on after those that an earlier attempt has sent: what follows a page
 * must not make it ring twice. `sendPart` is given what the part before returned, to be handed on or replaced.
 */
export async function sendParts(
  count: number,
  { progress, onProgress, providerReference }: SendOptions,
  sendPart: (index: number, reference: string | null) => Promise<string | null>,
): Promise<SendResult> {
  const [, done, told] = PROGRESS.exec(progress ?? "") ?? [];
  const from = Math.min(Number(done ?? 0), count);
  let reference = from === 0 ? providerReference : (told ?? null);
  for (let index = from; index < count; index += 1) {
    reference = await sendPart(index, reference);
    if (index < count - 1) onProgress?.(`part ${index + 1}${reference === null ? "" : ` ${reference}`}`);
  }
  const messages = count - from;
  return { providerReference: reference, ...(messages === 1 ? {} : { messages }) };
}
